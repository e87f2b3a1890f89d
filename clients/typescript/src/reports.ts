// Written from the OpenAPI document by npm run client-types

/** A row of every report of campaigns. */
export interface CampaignsRow {
  /** First day of the range, as asked for. */
  start_time: string;
  /** Last day of the range, as asked for. */
  end_time: string;
  /** The name of the campaign; its id where none is known. */
  campaign: string;
  /** `spent` / `conversions`, rounded to 6 places; 0 where `conversions` is 0. */
  cpa: number;
  /** `spent` / `referrals`, rounded to 6 places; 0 where `referrals` is 0. */
  cpc: number;
  /** 1000 × `spent` / `impressions`, rounded to 6 places; 0 where `impressions` is 0. */
  cpm: number;
  /** Number of impressions. */
  impressions: number;
  /** Number of conversions. */
  conversions: number;
  /** Number of referrals. */
  referrals: number;
  /** Amount of money, exact, up to 6 places; corrections included. */
  spent: number;
}

/** A row of every report of ad_units. */
export interface AdUnitsRow {
  /** First day of the range, as asked for. */
  start_time: string;
  /** Last day of the range, as asked for. */
  end_time: string;
  /** The name of the ad unit; its id where none is known. */
  ad_unit: string;
  /** Amount of money, exact, up to 6 places; corrections included. */
  estimated_revenue: number;
  /** Number of ad requests. */
  ad_requests: number;
  /** Number of impressions. */
  impressions: number;
  /** Number of referrals. */
  referrals: number;
  /** 1000 × `estimated_revenue` / `impressions`, rounded to 6 places; 0 where `impressions` is 0. */
  cpm: number;
  /** `impressions` / `ad_requests`, rounded to 6 places; 0 where `ad_requests` is 0. */
  fill_rate: number;
  /** `referrals` / `impressions`, rounded to 6 places; 0 where `impressions` is 0. */
  rtr: number;
}

/** The rows of each report, by its name. */
export interface Rows {
  campaigns: CampaignsRow;
  'campaigns/date': CampaignsRow;
  'campaigns/device': CampaignsRow & { device: string };
  'campaigns/device_date': CampaignsRow & { device: string };
  'campaigns/creative': CampaignsRow & { creative_headline: string; creative_id: string };
  'campaigns/creative_date': CampaignsRow & { creative_headline: string; creative_id: string };
  'campaigns/device_creative': CampaignsRow & {
    device: string;
    creative_headline: string;
    creative_id: string;
  };
  'campaigns/device_creative_date': CampaignsRow & {
    device: string;
    creative_headline: string;
    creative_id: string;
  };
  ad_units: AdUnitsRow;
  'ad_units/date': AdUnitsRow;
  'ad_units/device': AdUnitsRow & { device: string };
  'ad_units/device_date': AdUnitsRow & { device: string };
  'ad_units/site': AdUnitsRow & { site: string };
  'ad_units/site_date': AdUnitsRow & { site: string };
  'ad_units/device_site': AdUnitsRow & { device: string; site: string };
  'ad_units/device_site_date': AdUnitsRow & { device: string; site: string };
}

/** As in the path of its export: `campaigns/device_date`. */
export type ReportName = keyof Rows;
