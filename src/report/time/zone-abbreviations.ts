/** What zones are called at an offset from UTC, and no others. */
interface Zones {
  readonly at: Readonly<Record<string, string>>;
  /** Separated by white space. */
  readonly names: string;
}

/**
 * The abbreviations of tzdata 2025b, as its compiled zones end with them (RFC 9636 §3.3). The zones that it calls by their
 * offset alone, such as `+03`, are not here. ICU knows those of a few regions only, by the locale.
 */
export const zoneAbbreviations: readonly Zones[] = [
  {
    at: { '-11:00': 'SST' },
    names: 'Pacific/Midway Pacific/Pago_Pago Pacific/Samoa US/Samoa',
  },
  {
    at: { '-10:00': 'HST' },
    names: 'HST Pacific/Honolulu Pacific/Johnston US/Hawaii',
  },
  {
    at: { '-10:00': 'HST', '-09:00': 'HDT' },
    names: 'America/Adak America/Atka US/Aleutian',
  },
  {
    at: { '-09:00': 'AKST', '-08:00': 'AKDT' },
    names: `America/Anchorage America/Juneau America/Metlakatla America/Nome America/Sitka America/Yakutat
      US/Alaska`,
  },
  {
    at: { '-08:00': 'PST', '-07:00': 'PDT' },
    names: `America/Ensenada America/Los_Angeles America/Santa_Isabel America/Tijuana America/Vancouver
      Canada/Pacific Mexico/BajaNorte PST8PDT US/Pacific`,
  },
  {
    at: { '-07:00': 'MST' },
    names: `America/Creston America/Dawson America/Dawson_Creek America/Fort_Nelson America/Hermosillo
      America/Mazatlan America/Phoenix America/Whitehorse Canada/Yukon MST Mexico/BajaSur US/Arizona`,
  },
  {
    at: { '-07:00': 'MST', '-06:00': 'MDT' },
    names: `America/Boise America/Cambridge_Bay America/Ciudad_Juarez America/Denver America/Edmonton
      America/Inuvik America/Shiprock America/Yellowknife Canada/Mountain MST7MDT Navajo US/Mountain`,
  },
  {
    at: { '-06:00': 'CST' },
    names: `America/Bahia_Banderas America/Belize America/Chihuahua America/Costa_Rica America/El_Salvador
      America/Guatemala America/Managua America/Merida America/Mexico_City America/Monterrey
      America/Regina America/Swift_Current America/Tegucigalpa Canada/Saskatchewan Mexico/General`,
  },
  {
    at: { '-06:00': 'CST', '-05:00': 'CDT' },
    names: `America/Chicago America/Indiana/Knox America/Indiana/Tell_City America/Knox_IN America/Matamoros
      America/Menominee America/North_Dakota/Beulah America/North_Dakota/Center
      America/North_Dakota/New_Salem America/Ojinaga America/Rainy_River America/Rankin_Inlet
      America/Resolute America/Winnipeg CST6CDT Canada/Central US/Central US/Indiana-Starke`,
  },
  {
    at: { '-05:00': 'CST', '-04:00': 'CDT' },
    names: 'America/Havana Cuba',
  },
  {
    at: { '-05:00': 'EST' },
    names: `America/Atikokan America/Cancun America/Cayman America/Coral_Harbour America/Jamaica
      America/Panama EST Jamaica`,
  },
  {
    at: { '-05:00': 'EST', '-04:00': 'EDT' },
    names: `America/Detroit America/Fort_Wayne America/Grand_Turk America/Indiana/Indianapolis
      America/Indiana/Marengo America/Indiana/Petersburg America/Indiana/Vevay
      America/Indiana/Vincennes America/Indiana/Winamac America/Indianapolis America/Iqaluit
      America/Kentucky/Louisville America/Kentucky/Monticello America/Louisville America/Montreal
      America/Nassau America/New_York America/Nipigon America/Pangnirtung America/Port-au-Prince
      America/Thunder_Bay America/Toronto Canada/Eastern EST5EDT US/East-Indiana US/Eastern
      US/Michigan`,
  },
  {
    at: { '-04:00': 'AST' },
    names: `America/Anguilla America/Antigua America/Aruba America/Barbados America/Blanc-Sablon
      America/Curacao America/Dominica America/Grenada America/Guadeloupe America/Kralendijk
      America/Lower_Princes America/Marigot America/Martinique America/Montserrat
      America/Port_of_Spain America/Puerto_Rico America/Santo_Domingo America/St_Barthelemy
      America/St_Kitts America/St_Lucia America/St_Thomas America/St_Vincent America/Tortola
      America/Virgin`,
  },
  {
    at: { '-04:00': 'AST', '-03:00': 'ADT' },
    names: `America/Glace_Bay America/Goose_Bay America/Halifax America/Moncton America/Thule
      Atlantic/Bermuda Canada/Atlantic`,
  },
  {
    at: { '-03:30': 'NST', '-02:30': 'NDT' },
    names: 'America/St_Johns Canada/Newfoundland',
  },
  {
    at: { '+00:00': 'GMT' },
    names: `Africa/Abidjan Africa/Accra Africa/Bamako Africa/Banjul Africa/Bissau Africa/Conakry
      Africa/Dakar Africa/Freetown Africa/Lome Africa/Monrovia Africa/Nouakchott Africa/Ouagadougou
      Africa/Sao_Tome Africa/Timbuktu America/Danmarkshavn Atlantic/Reykjavik Atlantic/St_Helena
      Etc/GMT Etc/GMT+0 Etc/GMT-0 Etc/GMT0 Etc/Greenwich GMT GMT+0 GMT-0 GMT0 Greenwich Iceland`,
  },
  {
    at: { '+00:00': 'GMT', '+01:00': 'BST' },
    names: 'Europe/Belfast Europe/Guernsey Europe/Isle_of_Man Europe/Jersey Europe/London GB GB-Eire',
  },
  {
    at: { '+00:00': 'GMT', '+01:00': 'IST' },
    names: 'Eire Europe/Dublin',
  },
  {
    at: { '+00:00': 'UTC' },
    names: 'Etc/UCT Etc/UTC Etc/Universal Etc/Zulu UCT UTC Universal Zulu',
  },
  {
    at: { '+00:00': 'WET', '+01:00': 'WEST' },
    names: 'Atlantic/Canary Atlantic/Faeroe Atlantic/Faroe Atlantic/Madeira Europe/Lisbon Portugal WET',
  },
  {
    at: { '+01:00': 'CET' },
    names: 'Africa/Algiers Africa/Tunis',
  },
  {
    at: { '+01:00': 'CET', '+02:00': 'CEST' },
    names: `Africa/Ceuta Arctic/Longyearbyen Atlantic/Jan_Mayen CET Europe/Amsterdam Europe/Andorra
      Europe/Belgrade Europe/Berlin Europe/Bratislava Europe/Brussels Europe/Budapest Europe/Busingen
      Europe/Copenhagen Europe/Gibraltar Europe/Ljubljana Europe/Luxembourg Europe/Madrid Europe/Malta
      Europe/Monaco Europe/Oslo Europe/Paris Europe/Podgorica Europe/Prague Europe/Rome
      Europe/San_Marino Europe/Sarajevo Europe/Skopje Europe/Stockholm Europe/Tirane Europe/Vaduz
      Europe/Vatican Europe/Vienna Europe/Warsaw Europe/Zagreb Europe/Zurich Poland`,
  },
  {
    at: { '+01:00': 'MET', '+02:00': 'MEST' },
    names: 'MET',
  },
  {
    at: { '+01:00': 'WAT' },
    names: `Africa/Bangui Africa/Brazzaville Africa/Douala Africa/Kinshasa Africa/Lagos Africa/Libreville
      Africa/Luanda Africa/Malabo Africa/Ndjamena Africa/Niamey Africa/Porto-Novo`,
  },
  {
    at: { '+02:00': 'CAT' },
    names: `Africa/Blantyre Africa/Bujumbura Africa/Gaborone Africa/Harare Africa/Juba Africa/Khartoum
      Africa/Kigali Africa/Lubumbashi Africa/Lusaka Africa/Maputo Africa/Windhoek`,
  },
  {
    at: { '+02:00': 'EET' },
    names: 'Africa/Tripoli Europe/Kaliningrad Libya',
  },
  {
    at: { '+02:00': 'EET', '+03:00': 'EEST' },
    names: `Africa/Cairo Asia/Beirut Asia/Famagusta Asia/Gaza Asia/Hebron Asia/Nicosia EET Egypt
      Europe/Athens Europe/Bucharest Europe/Chisinau Europe/Helsinki Europe/Kiev Europe/Kyiv
      Europe/Mariehamn Europe/Nicosia Europe/Riga Europe/Sofia Europe/Tallinn Europe/Tiraspol
      Europe/Uzhgorod Europe/Vilnius Europe/Zaporozhye`,
  },
  {
    at: { '+02:00': 'IST', '+03:00': 'IDT' },
    names: 'Asia/Jerusalem Asia/Tel_Aviv Israel',
  },
  {
    at: { '+02:00': 'SAST' },
    names: 'Africa/Johannesburg Africa/Maseru Africa/Mbabane',
  },
  {
    at: { '+03:00': 'EAT' },
    names: `Africa/Addis_Ababa Africa/Asmara Africa/Asmera Africa/Dar_es_Salaam Africa/Djibouti
      Africa/Kampala Africa/Mogadishu Africa/Nairobi Indian/Antananarivo Indian/Comoro Indian/Mayotte`,
  },
  {
    at: { '+03:00': 'MSK' },
    names: 'Europe/Kirov Europe/Moscow Europe/Simferopol Europe/Volgograd W-SU',
  },
  {
    at: { '+05:00': 'PKT' },
    names: 'Asia/Karachi',
  },
  {
    at: { '+05:30': 'IST' },
    names: 'Asia/Calcutta Asia/Kolkata',
  },
  {
    at: { '+07:00': 'WIB' },
    names: 'Asia/Jakarta Asia/Pontianak',
  },
  {
    at: { '+08:00': 'AWST' },
    names: 'Australia/Perth Australia/West',
  },
  {
    at: { '+08:00': 'CST' },
    names: `Asia/Chongqing Asia/Chungking Asia/Harbin Asia/Macao Asia/Macau Asia/Shanghai Asia/Taipei PRC
      ROC`,
  },
  {
    at: { '+08:00': 'HKT' },
    names: 'Asia/Hong_Kong Hongkong',
  },
  {
    at: { '+08:00': 'PST' },
    names: 'Asia/Manila',
  },
  {
    at: { '+08:00': 'WITA' },
    names: 'Asia/Makassar Asia/Ujung_Pandang',
  },
  {
    at: { '+09:00': 'JST' },
    names: 'Asia/Tokyo Japan',
  },
  {
    at: { '+09:00': 'KST' },
    names: 'Asia/Pyongyang Asia/Seoul ROK',
  },
  {
    at: { '+09:00': 'WIT' },
    names: 'Asia/Jayapura',
  },
  {
    at: { '+09:30': 'ACST' },
    names: 'Australia/Darwin Australia/North',
  },
  {
    at: { '+09:30': 'ACST', '+10:30': 'ACDT' },
    names: 'Australia/Adelaide Australia/Broken_Hill Australia/South Australia/Yancowinna',
  },
  {
    at: { '+10:00': 'AEST' },
    names: 'Australia/Brisbane Australia/Lindeman Australia/Queensland',
  },
  {
    at: { '+10:00': 'AEST', '+11:00': 'AEDT' },
    names: `Antarctica/Macquarie Australia/ACT Australia/Canberra Australia/Currie Australia/Hobart
      Australia/Melbourne Australia/NSW Australia/Sydney Australia/Tasmania Australia/Victoria`,
  },
  {
    at: { '+10:00': 'ChST' },
    names: 'Pacific/Guam Pacific/Saipan',
  },
  {
    at: { '+12:00': 'NZST', '+13:00': 'NZDT' },
    names: 'Antarctica/McMurdo Antarctica/South_Pole NZ Pacific/Auckland',
  },
];
