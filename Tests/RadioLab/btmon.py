"""What an adapter of the radio lab sends and receives about security, from the text of BlueZ's own btmon: which pairing it was,
which keys came of it, whether the link is encrypted. bluetoothd and D-Bus know none of that.
"""

import re

FEATURES = {"Bonding": "bonding", "MITM": "mitm", "SC": "secure-connections"}


def security(text, adapter):
    """A line for each event of an adapter such as hci0, in the order of time:

    request CAPABILITY FEATURE…     a central asks for a pairing; features are bonding, mitm, secure-connections
    response CAPABILITY FEATURE…    the peripheral's answer
    public-key                      of LE Secure Connections; sent and received
    failed REASON                   of the Security Manager, in btmon's words
    key CURVE authenticated|unauthenticated   a key of a pairing; of P-256 it is one of LE Secure Connections, of P-192 not
    encrypted, plain                the link from now on
    ended                           the link
    """
    packet, pending, is_wanted = "", "", False
    for line in text:
        if line[:1] and line[0] in "<>@=":
            packet, pending, is_wanted = line, "", f"[{adapter}]" in line
            if is_wanted and line.startswith("> HCI Event: Disconnect Complete"):
                yield "ended"
        elif not is_wanted:
            continue
        elif found := re.match(r"\s+SMP: (.*?) \(0x", line):
            packet, pending = found[1], ""
            if packet == "Pairing Public Key":
                yield "public-key"
        elif found := re.match(r"\s+IO capability: (\w+)", line):
            pending = found[1]
        elif (found := re.match(r"\s+Authentication requirement: (.*) \(0x", line)) and pending:
            features = [FEATURES[word] for word in found[1].split(", ") if word in FEATURES]
            yield " ".join([packet.removeprefix("Pairing ").lower(), pending, *features])
        elif found := re.match(r"\s+Reason: (.*) \(0x", line):
            if packet == "Pairing Failed":
                yield f"failed {found[1]}"
        elif found := re.match(r"\s+Key type: (Auth|Unauth)enticated (?:legacy )?key(?: from (P-\d+))? \(0x", line):
            if "New Long Term Key" in packet:
                yield f"key {found[2] or 'P-192'} {found[1].lower()}enticated"
        elif (found := re.match(r"\s+Encryption: (\w+)", line)) and "Encryption Change" in packet:
            yield "encrypted" if found[1] == "Enabled" else "plain"
