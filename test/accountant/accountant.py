"""Checks the files that the product exports, as an accountant does: python3 accountant.py FOLDER

Recomputes every balance, the sums of statements and of FOCUS files, and the margin, in whole micros from the CSV files alone, and compares
them with each other and with server.json: what the server says, what upstreams cost and what was agreed. It shares no code with the
product. Prints the differences, and exits with 1 if there are any.
"""

import csv
import glob
import json
import os
import sys
from collections import defaultdict
from fractions import Fraction
from math import ceil

MICROS = 1_000_000
OTHER_KINDS = {
    "credit": "credits_micros",
    "topup": "topups_micros",
    "generation": "charges_micros",
    "refund": "refunds_micros",
    "adjustment": "adjustments_micros",
    "expiry": "expiries_micros",
}

differences = []
checks = 0


def check(what, found, expected):
    global checks
    checks += 1
    if found != expected:
        differences.append(f"{what}: {found}, expected {expected}")


def micros(text):
    """An amount in the currency as micros, exactly."""
    return Fraction(text or "0") * MICROS


def read(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def number(row, name):
    return int(row[name] or "0")


def quantities(row):
    """The tokens of a generation by kind. The exported counts of input and output contain the special kinds."""
    cached, written, for_an_hour = (
        number(row, name) for name in ("cached_input_tokens", "cache_write_tokens", "cache_write_1h_tokens")
    )
    reasoning = number(row, "reasoning_tokens")
    return {
        "input": number(row, "input_tokens") - cached - written,
        "cached_input": cached,
        "cache_write": written - for_an_hour,
        "cache_write_1h": for_an_hour,
        "output": number(row, "output_tokens") - reasoning,
        "reasoning": reasoning,
    }


def price_of(tokens, images, rates):
    """The price of one generation, rounded up once."""
    exact = sum(Fraction(count * rates[kind], MICROS) for kind, count in tokens.items())
    return ceil(exact) + images * rates.get("image", 0) + rates.get("request", 0)


def with_defaults(rates):
    """What a price list leaves out costs as much as the total it is part of."""
    whole = {"cached_input": "input", "cache_write": "input", "reasoning": "output"}
    rates = {**{kind: rates[of] for kind, of in whole.items()}, **rates}
    return {"cache_write_1h": rates["cache_write"], **rates}


class Ledger:
    def __init__(self, account_id, rows):
        self.account_id = account_id
        self.rows = sorted(rows, key=lambda row: int(row["seq"]))
        self.by_month = defaultdict(list)
        for row in self.rows:
            self.by_month[row["created_at"][:7]].append(row)

    def balance_before(self, month):
        return sum(number(row, "amount_micros") for row in self.rows if row["created_at"][:7] < month)

    def sum_of(self, month, *kinds):
        return sum(number(row, "amount_micros") for row in self.by_month[month] if row["kind"] in kinds)


def check_ledger(ledger, contracts):
    balance, charges, refunds = 0, {}, defaultdict(int)
    for place, row in enumerate(ledger.rows, 1):
        name = f"ledger of {ledger.account_id}, row {row['seq']}"
        amount = number(row, "amount_micros")
        balance += amount
        check(f"{name}, number", int(row["seq"]), place)
        check(f"{name}, balance", number(row, "balance_after_micros"), balance)
        check(f"{name}, balance as text", text_amount(row["balance_after"]), balance)
        check(f"{name}, balance below zero", balance < 0, False)
        if row["kind"] == "generation":
            rates = {kind: number(row, f"prices_{kind}") for kind in (*quantities(row), "image", "request")}
            check(f"{name}, charge", -amount, price_of(quantities(row), number(row, "images"), rates))
            charges[row["id"]] = (row, -amount)
        elif row["adjusted_entry_id"]:
            corrected, net = charges[row["adjusted_entry_id"]]
            rerating = contracts["reratings"].get(row["reason"])
            if rerating:
                discount = discount_of(contracts, ledger.account_id, corrected["price_list_version"])
                rest = max(0, rerated(corrected, rerating, discount) - refunds[corrected["id"]])
                check(f"{name}, difference", amount, net - rest)
            else:
                refunds[corrected["id"]] += amount
            charges[corrected["id"]] = (corrected, net - amount)
            check(f"{name}, refund above the charge", net - amount < 0, False)
    return balance


def discount_of(contracts, account_id, version):
    """In hundredths of a percent; None if the account had prices of its own."""
    return 0 if version in (None, "0") else contracts["discounts"].get(f"{account_id}/{version}")


def rerated(row, rates, discount):
    """The price of a generation at other prices, with the discount that its account had."""
    tiers = [tier for tier in rates["tiers"] if number(row, "input_tokens") > tier["above_input_tokens"]]
    last = with_defaults(tiers[-1] if tiers else rates)
    discounted = {kind: ceil(Fraction(price * (10_000 - discount), 10_000)) for kind, price in last.items() if kind in quantities(row)}
    return price_of(quantities(row), number(row, "images"), discounted)


def text_amount(text):
    return micros(text.replace("$", ""))


def check_statement(ledger, month, rows, answer):
    name = f"statement of {ledger.account_id} for {month}"
    opening, closing = ledger.balance_before(month), ledger.balance_before(month) + ledger.sum_of(month, *OTHER_KINDS)
    check(f"{name}, opening balance", number(rows[0], "amount_micros"), opening)
    check(f"{name}, closing balance", number(rows[-1], "amount_micros"), closing)
    check(f"{name}, sum", sum(number(row, "amount_micros") for row in rows[:-1]), closing)
    for kind, field in OTHER_KINDS.items():
        found = sum(number(row, "amount_micros") for row in rows if row["kind"] == kind)
        check(f"{name}, {kind}", found, ledger.sum_of(month, kind))
        check(f"{name}, {field} of the server", answer[field], ledger.sum_of(month, kind))
    check(f"{name}, opening balance of the server", answer["opening_balance_micros"], opening)
    check(f"{name}, closing balance of the server", answer["closing_balance_micros"], closing)
    lines = [(line["kind"], line["id"], line["model"], line["entries"], line["amount_micros"]) for line in answer["lines"]]
    check(
        f"{name}, lines of the server",
        [(row["kind"], row["id"], row["model"], number(row, "entries"), number(row, "amount_micros")) for row in rows],
        lines,
    )
    for row in rows:
        if row["kind"] == "generation":
            of_model = [one for one in ledger.by_month[month] if one["kind"] == "generation" and one["model"] == row["model"]]
            for field in ("amount_micros", "input_tokens", "output_tokens"):
                check(f"{name}, {field} of {row['model']}", number(row, field), sum(number(one, field) for one in of_model))
            check(f"{name}, entries of {row['model']}", number(row, "entries"), len(of_model))


def check_usage(rows, ledgers, contracts):
    """Sums per account, month, model and prices. Returns charges, costs and charges without costs by month and account."""
    totals = defaultdict(lambda: [0, 0, 0])
    found, expected = defaultdict(lambda: [0] * 4), defaultdict(lambda: [0] * 4)
    for row in rows:
        month = row["start"][:7]
        values = [number(row, name) for name in ("requests", "cost_micros", "upstream_cost_micros", "uncosted_micros")]
        group = (month, row["account_id"], row["model"], row["price_version"], row["price_tier"], row["price_list_version"])
        found[group] = [one + other for one, other in zip(found[group], values)]
        check(f"margin of {group}", number(row, "margin_micros"), values[1] - values[2] - values[3])
    for ledger in ledgers:
        for row in (row for row in ledger.rows if row["kind"] == "generation"):
            month, charge = row["created_at"][:7], -number(row, "amount_micros")
            group = (month, ledger.account_id, row["model"], row["price_version"], row["price_tier"], row["price_list_version"])
            rates = contracts["costs"].get(row["model"])
            cost = price_of(quantities(row), number(row, "images"), with_defaults(rates)) if rates else 0
            values = [1, charge, cost, 0 if rates else charge]
            expected[group] = [one + other for one, other in zip(expected[group], values)]
            totals[month, ledger.account_id] = [one + other for one, other in zip(totals[month, ledger.account_id], values[1:])]
    check("groups of the usage", sorted(found), sorted(expected))
    for group, values in expected.items():
        check(f"requests, charges, costs and charges without costs of {group}", found[group], values)
    return totals


def check_focus(version, rows, ledgers, totals, contracts):
    months = defaultdict(lambda: defaultdict(Fraction))
    for row in rows:
        name = f"FOCUS {version}, {row['ChargeDescription']} of {row['BillingAccountId']}"
        billed, effective = micros(row["BilledCost"]), micros(row["EffectiveCost"])
        month = months[row["BillingAccountId"], row["ChargePeriodStart"][:7]]
        category = row["ChargeCategory"]
        month[f"{category} billed"] += billed
        month[f"{category} effective"] += effective
        month["costs"] += micros(row["x_UpstreamCost"])
        month["without costs"] += micros(row["x_UncostedCharges"])
        check(f"{name}, billing period", row["BillingPeriodStart"][:7], row["ChargePeriodStart"][:7])
        if category == "Usage":
            month["rest"] += micros(row["ContractedCost"]) - Fraction(row["PricingQuantity"]) * micros(row["ContractedUnitPrice"])
            check(f"{name}, list cost", micros(row["ListCost"]), Fraction(row["PricingQuantity"]) * micros(row["ListUnitPrice"]))
            version_of_list = json.loads(row["SkuPriceDetails"]).get("x_PriceListVersion")
            discount = discount_of(contracts, row["BillingAccountId"], version_of_list)
            if discount is not None:
                discounted = ceil(micros(row["ListUnitPrice"]) * (10_000 - discount) / 10_000)
                check(f"{name}, price", micros(row["ContractedUnitPrice"]), discounted)
    for ledger in ledgers:
        balance = Fraction(0)
        for month in sorted(ledger.by_month):
            name = f"FOCUS {version}, {ledger.account_id} in {month}"
            found = months[ledger.account_id, month]
            promotional = sum(
                number(row, "amount_micros") for row in ledger.by_month[month] if row["reason"].startswith("promotional")
            )
            charge, cost, uncosted = totals[month, ledger.account_id]
            paid = ledger.sum_of(month, "credit", "topup", "refund") - promotional
            check(f"{name}, invoice", found["Purchase billed"], paid)
            check(f"{name}, billed for usage and corrections", found["Usage billed"] + found["Adjustment billed"], 0)
            check(f"{name}, effective cost of the usage", found["Usage effective"], charge)
            check(f"{name}, promotional credit", (found["Credit billed"], found["Credit effective"]), (-promotional,) * 2)
            corrected = -ledger.sum_of(month, "adjustment", "expiry")
            check(f"{name}, corrections and expiries", found["Adjustment effective"], corrected)
            check(f"{name}, costs", (found["costs"], found["without costs"]), (cost, uncosted))
            check(f"{name}, rounding below a micro for each charge", 0 <= found["rest"] < len(ledger.by_month[month]) + 1, True)
            effective = sum(value for kind, value in found.items() if kind.endswith("effective"))
            balance += found["Purchase billed"] - effective
            check(f"{name}, purchases minus effective costs", balance, ledger.balance_before(month) + ledger.sum_of(month, *OTHER_KINDS))


def main(folder):
    with open(os.path.join(folder, "server.json"), encoding="utf-8") as file:
        server = json.load(file)
    ledgers = []
    for account_id, said in server["accounts"].items():
        ledger = Ledger(account_id, read(os.path.join(folder, f"ledger-{account_id}.csv")))
        ledgers.append(ledger)
        check(f"balance of {account_id}", check_ledger(ledger, server["contracts"]), said["account"]["balance_micros"])
        closing = 0
        for month in server["months"]:
            rows = read(os.path.join(folder, f"statement-{account_id}-{month}.csv"))
            check(f"opening balance of {account_id} in {month}", number(rows[0], "amount_micros"), closing)
            closing = number(rows[-1], "amount_micros")
            check_statement(ledger, month, rows, said["statements"][month])
        check(f"last closing balance of {account_id}", closing, said["account"]["balance_micros"])
        check(f"months of {account_id}", sorted(ledger.by_month), server["months"])
    kinds = {row["kind"] for ledger in ledgers for row in ledger.rows}
    check("kinds of entries", kinds, set(OTHER_KINDS))
    totals = check_usage(read(os.path.join(folder, "usage.csv")), ledgers, server["contracts"])
    for row in server["margin"]["rows"]:
        charge, cost, uncosted = totals[row["usage"]["start"][:7], row["account_id"]]
        found = [row["usage"]["cost_micros"], row["upstream_cost_micros"], row["uncosted_micros"], row["margin_micros"]]
        check(f"margin of {row['account_id']}", found, [charge, cost, uncosted, charge - uncosted - cost])
    check("rows of the margin", len(server["margin"]["rows"]), len(totals))
    for version in ("1.2", "1.3"):
        check_focus(version, read(os.path.join(folder, f"focus-{version}.csv")), ledgers, totals, server["contracts"])
    files = len(glob.glob(os.path.join(folder, "*.csv")))
    entries = sum(len(ledger.rows) for ledger in ledgers)
    for difference in differences:
        print(difference)
    print(f"{checks} figures of {entries} ledger entries in {files} files recomputed, {len(differences)} differ")
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
