"""Checks a closed month without adtally: python3 check_manifest.py ROWS MANIFEST [JWKS]

ROWS is what `adtally closes rows` prints, MANIFEST what `adtally closes manifest` prints or the service answers, and JWKS a
copy of https://…/.well-known/jwks.json. Needs the standard library, and openssl 3 for the signature.
"""

import base64, hashlib, json, subprocess, sys, tempfile
from decimal import Decimal, getcontext

getcontext().prec = 60


def require(fits, otherwise):
    if not fits:
        sys.exit(otherwise)


def encoded(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def decoded(text):
    data = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    require(encoded(data) == text, "the signature is not written as it should be")
    return data


def check_rows(path, said):
    digest, rows = hashlib.sha256(), -1
    totals = {family: dict.fromkeys(of["totals"], Decimal(0)) for family, of in said["families"].items()}
    with open(path, "rb") as file:
        for rows, line in enumerate(file):
            digest.update(line)
            row = json.loads(line)
            if rows == 0:
                whose = (row["account_id"], row["month"])
                require(whose == (said["account_id"], said["month"]), f"the rows are those of {whose}")
                continue
            for name in totals[row["family"]]:
                totals[row["family"]][name] += Decimal(row.get(name, "0"))
    require(digest.hexdigest() == said["revision"], f"the rows have the sha256 {digest.hexdigest()}")
    require(rows == said["rows"], f"there are {rows} rows")
    for family, of in said["families"].items():
        require({name: Decimal(sum) for name, sum in of["totals"].items()} == totals[family], f"sums of {family} differ")


def check_signature(line, text, said, keys):
    signature = json.loads(text)
    plain = {"protected": signature["protected"], "signature": signature["signature"]}
    require(json.dumps(plain, separators=(",", ":")) == text, "what follows the first line is no signature")
    head = json.loads(decoded(signature["protected"]))
    require(set(head) == {"alg", "kid"}, "what follows the first line is no signature")
    keys = [key for key in keys if key.get("kid") == head["kid"] and key.get("crv") == "Ed25519"]
    require(head["alg"] == "EdDSA" and keys, f"the key {head['kid']} is not among those that are given")
    with tempfile.TemporaryDirectory() as folder:
        # Before the bytes of a key stands what says that it is one of Ed25519 (RFC 8410).
        key = bytes.fromhex("302a300506032b6570032100") + decoded(keys[0]["x"])
        signed = f"{signature['protected']}.{encoded(line)}".encode()
        for name, data in ("key", key), ("signed", signed), ("signature", decoded(signature["signature"])):
            with open(f"{folder}/{name}", "wb") as file:
                file.write(data)
        command = "openssl pkeyutl -verify -rawin -pubin -keyform DER -inkey key -in signed -sigfile signature"
        done = subprocess.run(command.split(), cwd=folder, stdout=subprocess.DEVNULL)
    require(done.returncode == 0, f"the signature is not that of the key {head['kid']}")
    require(said["signed_by"] == head["kid"], f"it says that {said['signed_by']} signed it, and {head['kid']} did")
    return f"signed with the key {head['kid']}"


rows, manifest, *keys = sys.argv[1:]
text = open(manifest, "rb").read().decode()
line, signature, *more = text.split("\n") if text.endswith("\n") else ("", "", text)
require(line and more in ([], [""]), "it is no manifest of a close")
said = json.loads(line)
require((signature != "") == (said["signed_by"] is not None), "its signature is missing, or not its own")
require(signature or not keys, "the manifest is not signed")
signer = check_signature(line.encode(), signature, said, json.load(open(keys[0]))["keys"]) if keys else "the signature was not checked"
check_rows(rows, said)
print("the rows fit;", signer if signature else "nobody signed")
