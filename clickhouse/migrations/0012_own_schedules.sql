-- Of a mail: a language of the page, with a country or without.
ALTER TABLE schedules ADD COLUMN IF NOT EXISTS language String DEFAULT 'en-GB' AFTER state;
-- Who made it. Empty: the operator; else the token or the person that made it for their account. Its recipients are asked first.
ALTER TABLE schedules ADD COLUMN IF NOT EXISTS made_by String AFTER language;

-- Who wants the mails of an account's own schedules, and since when. Recipients are asked once; that, a yes and a no are noted of
-- the schedule `account ACCOUNT`, in `mails` of the day 1970-01-01.
-- cluster: by schedule
CREATE TABLE IF NOT EXISTS agreed
(
    schedule String,
    recipient String,
    at DateTime64(3, 'UTC') DEFAULT now64(3)
)
ENGINE = MergeTree
ORDER BY (schedule, recipient);
