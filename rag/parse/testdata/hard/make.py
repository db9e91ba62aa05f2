#!/usr/bin/env python3
"""Makes the difficult documents of this folder anew, and beside each one NAME.txt: the text that it must give.

Needs Python 3 and from Debian: libreoffice-writer-nogui, libreoffice-calc-nogui, pandoc, ghostscript, groff, qpdf,
fonts-dejavu-core. Ids and dates in the files differ each time; the texts do not. Names of functions as arguments make only theirs.
"""
import email.message
import email.policy
import pathlib
import shutil
import subprocess
import sys
import tempfile

here = pathlib.Path(__file__).resolve().parent
work = pathlib.Path(tempfile.mkdtemp())


def run(*command, **more):
    return subprocess.run([str(c) for c in command], check=True, stdout=subprocess.PIPE, cwd=work, **more).stdout


def write(name, content, text):
    """A document and the text that it must give."""
    (here / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    (here / (name + ".txt")).write_text(text.strip() + "\n", encoding="utf-8")


def office(source, target):
    """What LibreOffice makes of a flat OpenDocument file."""
    run("soffice", "--headless", f"-env:UserInstallation=file://{work}/profile", "--convert-to", target, "--outdir", work, work / source, stderr=subprocess.DEVNULL)
    return (work / (source.rsplit(".", 1)[0] + "." + target.split(":")[0])).read_bytes()


RIVERS = [
    "The Rhine rises in the Alps and flows north through six countries. Barges carry coal, gravel and containers between Basel and "
    "Rotterdam, and the locks on the upper reaches are open through the night.",
    "Official figures show that traffic has fallen since the drought of 2018, when ships could be loaded to a third of their "
    "capacity. The waterway administration has since deepened the affected stretches, difficult though the floor is.",
    "Its tributaries, among them the Neckar, the Main and the Moselle, connect the river with industrial districts far from the "
    "sea. Canals built in the nineteenth century shortened the journey considerably.",
    "Fishermen remember a different river. Salmon disappeared in the fifties and returned only after the treatment plants had been "
    "finished; today their migration is counted at a window beside the fish ladder.",
]


def groff(macros, *options):
    return run("ps2pdf", "-", "-", input=run("groff", "-ms", "-Tps", *options, input=macros.encode()))


def columns():
    body = "\n.PP\n".join(RIVERS)
    pages = groff(f".nr PS 10\n.nr HM 1i\n.TL\nRivers of Europe\n.2C\n.hy\n.PP\n{body}\n.PP\n{body}\n.PP\n{body}\n.PP\n{body}\n")
    text = "Rivers of Europe\n\n" + "\n\n".join(RIVERS * 4)
    write("columns.pdf", pages, text)  # two columns, words parted at the ends of lines, ligatures
    (work / "columns.pdf").write_bytes(pages)
    run("qpdf", "--rotate=+90", "columns.pdf", "rotated.pdf")
    write("rotated.pdf", (work / "rotated.pdf").read_bytes(), text)
    return pages


def pdf(objects, trailer=""):
    """A PDF document of objects, numbered from 1; the first is the catalogue."""
    out, places = b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n", []
    for i, o in enumerate(objects):
        places.append(len(out))
        out += f"{i + 1} 0 obj\n".encode() + (o if isinstance(o, bytes) else o.encode("latin-1")) + b"\nendobj\n"
    start = len(out)
    out += f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n".encode()
    out += b"".join(f"{p:010d} 00000 n \n".encode() for p in places)
    return out + f"trailer\n<< /Size {len(objects) + 1} /Root 1 0 R {trailer}>>\nstartxref\n{start}\n%%EOF\n".encode()


def stream(content, head=""):
    content = content.encode("latin-1")
    return f"<< /Length {len(content)} {head}>>\nstream\n".encode() + content + b"\nendstream"


FONT = "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>"


def lines(*texts):
    return "BT /F1 12 Tf 60 740 Td 16 TL " + " ".join(f"({t}) Tj T*" for t in texts) + " ET"


def updated():
    """A page whose content was replaced by an incremental update."""
    first = pdf(["<< /Type /Catalog /Pages 2 0 R >>", "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
                 "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents 4 0 R /Resources << /Font << /F1 5 0 R >> >> >>",
                 stream(lines("The bridge opens in spring.")), FONT])
    place, start = len(first), first.rindex(b"startxref\n") + 10
    before = int(first[start:].split()[0])
    body = b"4 0 obj\n" + stream(lines("The bridge opens in autumn, half a year late.")) + b"\nendobj\n"
    end = place + len(body)
    update = body + f"xref\n4 1\n{place:010d} 00000 n \ntrailer\n<< /Size 6 /Root 1 0 R /Prev {before} >>\nstartxref\n{end}\n%%EOF\n".encode()
    write("updated.pdf", first + update, "The bridge opens in autumn, half a year late.")


def form():
    """Fields of a form, a note written on the page, a note that only opens, one that is hidden, and a link."""
    look = lambda text: stream(f"BT /F1 11 Tf 2 5 Td ({text}) Tj ET", "/Type /XObject /Subtype /Form /BBox [0 0 300 20] /Resources << /Font << /F1 5 0 R >> >> ")
    objects = ["<< /Type /Catalog /Pages 2 0 R /AcroForm << /Fields [6 0 R 8 0 R] >> >>", "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
               "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents 4 0 R /Resources << /Font << /F1 5 0 R >> >> "
               "/Annots [6 0 R 8 0 R 10 0 R 12 0 R 13 0 R 15 0 R] >>",
               stream(lines("Application for a mooring", "Name of the vessel and its home port:")), FONT,
               "<< /Type /Annot /Subtype /Widget /FT /Tx /T (vessel) /V (Marie Celeste) /Rect [60 640 360 660] /F 4 /AP << /N 7 0 R >> >>", look("Marie Celeste"),
               "<< /Type /Annot /Subtype /Widget /FT /Ch /T (port) /V (Antwerp) /Opt [(Antwerp) (Ghent)] /Rect [60 610 360 630] /F 4 /AP << /N 9 0 R >> >>", look("Antwerp"),
               "<< /Type /Annot /Subtype /FreeText /Contents (Paid in cash) /DA (/F1 11 Tf) /Rect [60 580 360 600] /F 4 /AP << /N 11 0 R >> >>", look("Paid in cash"),
               "<< /Type /Annot /Subtype /Text /Contents (only seen when opened) /Rect [400 640 420 660] /F 4 >>",
               "<< /Type /Annot /Subtype /FreeText /Contents (withdrawn) /DA (/F1 11 Tf) /Rect [60 550 360 570] /F 2 /AP << /N 14 0 R >> >>", look("withdrawn"),
               "<< /Type /Annot /Subtype /Link /Rect [60 700 200 720] /Border [0 0 0] /A << /S /URI /URI (https://example.com/moorings) >> >>"]
    write("form.pdf", pdf(objects), "Application for a mooring\nName of the vessel and its home port:\nMarie Celeste\nAntwerp\nPaid in cash")


def attached():
    """Two attachments: a table, and a text in Russian."""
    (work / "page.pdf").write_bytes(pdf(["<< /Type /Catalog /Pages 2 0 R >>", "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents 4 0 R /Resources << /Font << /F1 5 0 R >> >> >>",
        stream(lines("The figures are attached.")), FONT]))
    (work / "figures.csv").write_text("River,Length\nRhine,1233\nDanube,2850\n")
    (work / "заметка.txt").write_bytes("Вода поднялась на метр.".encode("cp1251"))
    run("qpdf", "page.pdf", "attached.pdf", "--add-attachment", "figures.csv", "--", "--add-attachment", "заметка.txt", "--filename=заметка.txt", "--")
    write("attached.pdf", (work / "attached.pdf").read_bytes(),
          "The figures are attached.\n\nAttachment: figures.csv\n\nRiver | Length\nRhine | 1233\nDanube | 2850\n\nAttachment: заметка.txt\n\nВода поднялась на метр.")


OFFICE = """<?xml version="1.0" encoding="UTF-8"?>
<office:document xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0" xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0"
 xmlns:table="urn:oasis:names:tc:opendocument:xmlns:table:1.0" xmlns:style="urn:oasis:names:tc:opendocument:xmlns:style:1.0"
 xmlns:fo="urn:oasis:names:tc:opendocument:xmlns:xsl-fo-compatible:1.0" xmlns:draw="urn:oasis:names:tc:opendocument:xmlns:drawing:1.0"
 xmlns:svg="urn:oasis:names:tc:opendocument:xmlns:svg-compatible:1.0" xmlns:dc="http://purl.org/dc/elements/1.1/"
 xmlns:number="urn:oasis:names:tc:opendocument:xmlns:datastyle:1.0" xmlns:of="urn:oasis:names:tc:opendocument:xmlns:of:1.2"
 office:version="1.2" office:mimetype="application/vnd.oasis.opendocument.%s">%s</office:document>"""


def report():
    """Tracked changes, a text box, nested tables, a footnote, an endnote, a header, a footer, fields, a list, a comment."""
    styles = """<office:automatic-styles><style:page-layout style:name="pl"/>
<style:style style:name="fr" style:family="graphic"><style:graphic-properties style:wrap="none"/></style:style></office:automatic-styles>
<office:master-styles><style:master-page style:name="Standard" style:page-layout-name="pl"><style:header><text:p>Harbour office, confidential</text:p></style:header>
<style:footer><text:p>Sheet <text:page-number/></text:p></style:footer></style:master-page></office:master-styles>"""
    body = """<office:body><office:text><text:tracked-changes>
<text:changed-region text:id="c1"><text:insertion><office:change-info><dc:creator>A</dc:creator><dc:date>2024-05-01T10:00:00</dc:date></office:change-info></text:insertion></text:changed-region>
<text:changed-region text:id="c2"><text:deletion><office:change-info><dc:creator>A</dc:creator><dc:date>2024-05-01T10:00:00</dc:date></office:change-info><text:p>discarded</text:p></text:deletion></text:changed-region>
</text:tracked-changes>
<text:h text:outline-level="1">Harbour report</text:h>
<text:p>The quay was <text:change-start text:change-id="c1"/>thoroughly <text:change-end text:change-id="c1"/><text:change text:change-id="c2"/> repaired in May.<text:note text:note-class="footnote" text:id="n1"><text:note-citation>1</text:note-citation><text:note-body><text:p>By the firm of Jansen.</text:p></text:note-body></text:note> It cost less than expected.<text:note text:note-class="endnote" text:id="n2"><text:note-citation>i</text:note-citation><text:note-body><text:p>Figures from the audit.</text:p></text:note-body></text:note></text:p>
<text:p>Beside it stands a box.<draw:frame draw:style-name="fr" text:anchor-type="paragraph" svg:width="6cm" svg:height="2cm"><draw:text-box><text:p>Warning: the crane swings low.</text:p></draw:text-box></draw:frame></text:p>
<text:p>The report of <text:date text:fixed="true" text:date-value="2024-05-06">6 May 2024</text:date> is filed; see <text:a xmlns:xlink="http://www.w3.org/1999/xlink" xlink:href="https://example.com/plan">the plan</text:a>.<office:annotation><dc:creator>A</dc:creator><text:p>ask again</text:p></office:annotation></text:p>
<text:h text:outline-level="2">Berths</text:h>
<table:table table:name="t"><table:table-column table:number-columns-repeated="2"/>
<table:table-row><table:table-cell><text:p>Berth</text:p></table:table-cell><table:table-cell><text:p>Depth</text:p></table:table-cell></table:table-row>
<table:table-row><table:table-cell><text:p>North</text:p></table:table-cell><table:table-cell><table:table table:name="u"><table:table-column table:number-columns-repeated="2"/><table:table-row><table:table-cell><text:p>low water</text:p></table:table-cell><table:table-cell><text:p>4.5 m</text:p></table:table-cell></table:table-row></table:table><text:p/></table:table-cell></table:table-row></table:table>
<text:list><text:list-item><text:p>Renew the bollards</text:p></text:list-item><text:list-item><text:p>Paint the shed</text:p></text:list-item></text:list>
</office:text></office:body>"""
    (work / "report.fodt").write_text(OFFICE % ("text", styles + body), encoding="utf-8")
    head = "Harbour report\n\nThe quay was thoroughly repaired in May.{0} It cost less than expected.{1}"
    notes = "By the firm of Jansen.\n\n{1}Figures from the audit."
    rest = ("Beside it stands a box.\n\nWarning: the crane swings low.\n\nThe report of 5/6/24 is filed; see the plan.\n\nBerths\n\nBerth | Depth\nNorth | low water 4.5 m\n\n"
            "- Renew the bollards\n- Paint the shed")
    write("report.docx", office("report.fodt", "docx"), head.format("[1]", "[2]") + "\n\n[1] " + notes.format("", "[2] ") + "\n\n" + rest)
    write("report.rtf", office("report.fodt", "rtf"), head.format(" [By the firm of Jansen.]", " [Figures from the audit.]") + "\n\n" + rest)
    shown = rest.replace("- ", "")
    # LibreOffice prints what was deleted, struck through.
    write("report.pdf", office("report.fodt", "pdf"), "Harbour office, confidential\n\n" + head.format("1", "i").replace("thoroughly ", "thoroughly discarded") + "\n\n" + shown +
          "\n\n1 By the firm of Jansen.\n\nSheet 1\n\ni Figures from the audit.")


def right_to_left():
    hebrew, arabic = "הנהר זורם צפונה דרך שש מדינות אל הים.", "يجري النهر شمالا عبر ست دول إلى البحر."
    style = """<office:styles><style:style style:name="rtl" style:family="paragraph"><style:paragraph-properties style:writing-mode="rl-tb"/>
<style:text-properties style:font-name-complex="DejaVu Sans" fo:font-family="DejaVu Sans"/></style:style></office:styles>"""
    body = f"""<office:body><office:text><text:p text:style-name="rtl">{hebrew}</text:p><text:p text:style-name="rtl">{arabic}</text:p><text:p>North of it lies Basel.</text:p></office:text></office:body>"""
    (work / "rtl.fodt").write_text(OFFICE % ("text", style + body), encoding="utf-8")
    made = office("rtl.fodt", "pdf")
    write("rtl.pdf", made, f"{hebrew}\n\n{arabic}\n\nNorth of it lies Basel.")
    write("rtl.docx", office("rtl.fodt", "docx"), f"{hebrew}\n\n{arabic}\n\nNorth of it lies Basel.")
    # The same without the tables that say what the glyphs mean.
    (work / "rtl.pdf").write_bytes(made)
    run("qpdf", "--qdf", "--object-streams=disable", "rtl.pdf", "open.pdf")
    blind = (work / "open.pdf").read_bytes().replace(b"/ToUnicode", b"/NoUnicode")
    (work / "blind.pdf").write_bytes(blind)
    run("qpdf", "--object-streams=generate", "--compress-streams=y", "blind.pdf", "no-tounicode.pdf")
    (here / "no-tounicode.pdf").write_bytes((work / "no-tounicode.pdf").read_bytes())  # nobody can read it: no text beside it


def workbook():
    """Formulas, dates, amounts, merged cells, a hidden sheet."""
    styles = """<office:automatic-styles>
<number:date-style style:name="d"><number:year number:style="long"/><number:text>-</number:text><number:month number:style="long"/><number:text>-</number:text><number:day number:style="long"/></number:date-style>
<number:percentage-style style:name="p"><number:number number:decimal-places="1" number:min-integer-digits="1"/><number:text>%</number:text></number:percentage-style>
<style:style style:name="date" style:family="table-cell" style:data-style-name="d"/><style:style style:name="percent" style:family="table-cell" style:data-style-name="p"/>
<style:style style:name="hidden" style:family="table"><style:table-properties table:display="false"/></style:style></office:automatic-styles>"""
    cell = lambda t: f'<table:table-cell office:value-type="string"><text:p>{t}</text:p></table:table-cell>'
    row = lambda *cells: "<table:table-row>" + "".join(cells) + "</table:table-row>"
    number = lambda v: f'<table:table-cell office:value-type="float" office:value="{v}"/>'
    sheet = ('<table:table table:name="Tolls">' +
             row('<table:table-cell table:number-columns-spanned="4" office:value-type="string"><text:p>Tolls in 2024</text:p></table:table-cell>', '<table:covered-table-cell table:number-columns-repeated="3"/>') +
             row(cell("Lock"), cell("Opened"), cell("Ships"), cell("Share")) +
             row(cell("Upper"), '<table:table-cell table:style-name="date" office:value-type="date" office:date-value="2024-03-05"/>', number(120), '<table:table-cell table:style-name="percent" office:value-type="percentage" table:formula="of:=[.C3]/[.C5]" office:value="0.75"/>') +
             row(cell("Lower"), '<table:table-cell table:style-name="date" office:value-type="date" office:date-value="2024-11-30"/>', number(40), '<table:table-cell table:style-name="percent" office:value-type="percentage" table:formula="of:=[.C4]/[.C5]" office:value="0.25"/>') +
             row(cell("Total"), "<table:table-cell/>", '<table:table-cell office:value-type="float" table:formula="of:=SUM([.C3:.C4])" office:value="160"/>', "<table:table-cell/>") + "</table:table>" +
             '<table:table table:name="Secret" table:style-name="hidden">' + row(cell("not for readers")) + "</table:table>")
    (work / "tolls.fods").write_text(OFFICE % ("spreadsheet", styles + f"<office:body><office:spreadsheet>{sheet}</office:spreadsheet></office:body>"), encoding="utf-8")
    write("tolls.xlsx", office("tolls.fods", "xlsx"), "Tolls\n\nTolls in 2024\nLock | Opened | Ships | Share\nUpper | 2024-03-05 | 120 | 75.0%\nLower | 2024-11-30 | 40 | 25.0%\nTotal | 160")


def slides():
    source = ("---\ntitle: Rivers\n---\n\n# The Rhine\n\n- rises in the Alps\n- reaches the sea at Rotterdam\n\n::: notes\n\nMention the drought.\n\n:::\n\n"
              "# Figures\n\n| River | Length |\n|---|---|\n| Rhine | 1233 |\n| Danube | 2850 |\n")
    (work / "slides.md").write_text(source)
    run("pandoc", "slides.md", "-o", "slides.pptx")
    write("slides.pptx", (work / "slides.pptx").read_bytes(),
          "Rivers\n\nThe Rhine\n\n- rises in the Alps\n- reaches the sea at Rotterdam\n\nMention the drought.\n\nFigures\n\nRiver | Length\nRhine | 1233\nDanube | 2850")


RUSSIAN = "Рейн берёт начало в Альпах и течёт на север через шесть стран. Баржи возят уголь, гравий и контейнеры между Базелем и Роттердамом, а шлюзы открыты всю ночь."
JAPANESE = "ライン川はアルプスに源を発し、六つの国を通って北へ流れる。バーゼルとロッテルダムの間では、はしけが石炭や砂利を運んでいる。"
CHINESE = "莱茵河发源于阿尔卑斯山，流经六个国家，向北注入北海。驳船在巴塞尔和鹿特丹之间运送煤炭、砾石和集装箱，船闸整夜开放。"
GERMAN = "Der Rhein entspringt in den Alpen und fließt durch sechs Länder nach Norden. Für Schiffe über 135 Meter gelten größere Abstände."


def charsets():
    for name, text, charset in [("russian-1251", RUSSIAN, "cp1251"), ("russian-koi8", RUSSIAN, "koi8-r"), ("russian-866", RUSSIAN, "cp866"), ("german-1252", GERMAN, "cp1252"),
                                ("german-latin1", GERMAN, "latin-1"), ("japanese-sjis", JAPANESE, "shift_jis"), ("japanese-euc", JAPANESE, "euc_jp"), ("chinese-gb18030", CHINESE, "gb18030"),
                                ("russian-utf16le", RUSSIAN, "utf-16-le"), ("russian-utf16be", RUSSIAN, "utf-16-be"), ("russian-utf16bom", RUSSIAN, "utf-16"), ("german-utf8bom", GERMAN, "utf-8-sig")]:
        write(name + ".text", (text + "\n").encode(charset), text)


def pages():
    filler = "<!-- " + "x" * 1500 + " -->"
    article = lambda text: f"<article><h1>Rhein</h1><p>{text}</p><p>{text}</p></article>"
    write("late-charset.html", f"<html><head>{filler}<meta charset=windows-1251><title>Т</title></head><body>{article(RUSSIAN)}</body></html>".encode("cp1251"), f"Rhein\n\n{RUSSIAN}\n\n{RUSSIAN}")
    write("lying-charset.html", f"<html><head><meta charset=utf-8><title>Т</title></head><body>{article(RUSSIAN)}</body></html>".encode("cp1251"), f"Rhein\n\n{RUSSIAN}\n\n{RUSSIAN}")
    write("latin-that-is-utf8.html", f"<html><head><meta charset=iso-8859-1><title>T</title></head><body>{article(GERMAN)}</body></html>", f"Rhein\n\n{GERMAN}\n\n{GERMAN}")
    write("japanese-meta.html", f"<html><head><meta http-equiv=Content-Type content='text/html; charset=Shift_JIS'></head><body>{article(JAPANESE)}</body></html>".encode("shift_jis"), f"Rhein\n\n{JAPANESE}\n\n{JAPANESE}")
    write("broken-nesting.html", "<!doctype html><title>T</title><p>One <b>bold <i>both</b> italic</i> end<p>Two<table><tr><td>a<td>b<tr><td>c</table></div></span><ul><li>x<li>y</p></ul>Three",
          "One bold both italic end\n\nTwo\n\na | b\nc\n\n- x\n- y\n\nThree")
    write("deep.html", "<!doctype html><title>T</title>" + "<div>" * 2000 + "<p>At the bottom.</p>" + "</div>" * 2000 + "<p>And outside.</p>", "At the bottom.\n\nAnd outside.")
    write("attributes.html", "<!doctype html><title>T</title><main><h1>Prices</h1><p data-note='not text' title='nor this'>The ticket costs <span data-price='7'>seven</span> euros.</p>"
          "<noscript>Please enable scripts to see the map.</noscript><template><p>Row of a template</p></template><script>var a = 'code';</script><style>p { color: red }</style>"
          "<img alt='' src=x><p hidden>Hidden.</p><p>Children travel free.</p></main>", "Prices\n\nThe ticket costs seven euros.\n\nChildren travel free.")
    write("boilerplate.html", "<!doctype html><title>Ferry timetable</title><header><nav><ul><li><a href=/>Home</a><li><a href=/news>News</a><li><a href=/shop>Shop</a></ul></nav></header>"
          "<div id=cookie-banner role=dialog aria-label='Cookie consent'><p>We use cookies to improve your visit.</p><button>Accept</button></div>"
          "<main><h1>Ferry timetable</h1>" + "".join(f"<p>{p}</p>" for p in RIVERS) + "<dl><dt>Low season</dt><dd>every two hours</dd></dl></main>"
          "<aside><h2>Related</h2><a href=/a>Ten walks</a></aside><footer><p>© 2024 Ferry company. All rights reserved.</p></footer>",
          "Ferry timetable\n\n" + "\n\n".join(RIVERS) + "\n\nLow season\nevery two hours")


def mail():
    m = email.message.EmailMessage(policy=email.policy.SMTP)
    m["From"] = "Jürgen Groß <jg@example.com>"
    m["To"] = "Мария Иванова <maria@example.com>"
    m["Subject"] = "Re: Überschwemmung на Рейне, 2024年"
    m["Date"] = "Mon, 06 May 2024 10:00:00 +0200"
    m["Message-ID"] = "<1@example.com>"
    m.set_content(GERMAN + "\n", charset="iso-8859-1", cte="quoted-printable")
    m.add_alternative(f"<html><body><p>{GERMAN}</p></body></html>", subtype="html", charset="utf-8", cte="base64")
    m.add_attachment(RUSSIAN.encode("koi8-r"), maintype="text", subtype="plain", filename="отчёт.txt", params={"charset": "koi8-r"})
    inner = email.message.EmailMessage(policy=email.policy.SMTP)
    inner["From"] = "Haruto <h@example.com>"
    inner["Subject"] = "川の水位"
    inner.set_content(JAPANESE + "\n", charset="iso-2022-jp", cte="7bit")
    m.add_attachment(inner)
    write("nested.eml", m.as_bytes(), "Re: Überschwemmung на Рейне, 2024年\n\nFrom: Jürgen Groß <jg@example.com>\nTo: Мария Иванова <maria@example.com>\nDate: Mon, 06 May 2024 10:00:00 +0200\n\n"
          f"{GERMAN}\n\nAttachment: отчёт.txt\n\n{RUSSIAN}\n\nAttachment: message/rfc822\n\n川の水位\n\nFrom: Haruto <h@example.com>\n\n{JAPANESE}")


def books():
    (work / "book.md").write_text("---\ntitle: On rivers\nlang: en\n---\n\n# Source\n\n" + RIVERS[0] + "\n\n# Mouth\n\n" + RIVERS[1] + "\n")
    run("pandoc", "book.md", "-o", "book.epub")
    write("book.epub", (work / "book.epub").read_bytes(), "On rivers\n\nSource\n\n" + RIVERS[0] + "\n\nMouth\n\n" + RIVERS[1])


def tables():
    rows = "River;Länge;Land\n" + "".join(f"Fluß {i};{i * 10},5;\"Land; {i}\"\n" for i in range(1, 31))
    text = "".join(f"Fluß {i} | {i * 10},5 | Land; {i}\n" for i in range(1, 31))
    write("semicolons.csv", rows.encode("cp1252"), "River | Länge | Land\n" + text)


TOLLS = [("Lock", "Opened", "Ships", "Share"), ("Upper Iffezheim", "1977", "24,112", "18.4 %"), ("Gambsheim", "1974", "24,890", "19.0 %"), ("Kehl", "1970", "9,051", "6.9 %"),
         ("Gerstheim", "1967", "8,733", "6.7 %"), ("Rhinau", "1963", "8,420", "6.4 %"), ("Marckolsheim", "1961", "8,118", "6.2 %")]


def as_rows(rows):
    return "\n".join(" | ".join(r) for r in rows)


def placed(*pieces):
    """A page with pieces of text at places (x, y), in the order given."""
    return pdf(["<< /Type /Catalog /Pages 2 0 R >>", "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
                "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents 4 0 R /Resources << /Font << /F1 5 0 R >> >> >>",
                stream("\n".join("BT /F1 10 Tf %d %d Td (%s) Tj ET" % (x, y, t.replace("(", "\\(").replace(")", "\\)")) for x, y, t in pieces)), FONT])


def pdf_tables():
    """Tables with rules and without, over two pages, with empty cells; text stands around them."""
    before, after = "The locks of the upper Rhine are open day and night; their traffic is counted at the gates.", "Pleasure craft are not part of these figures, and neither are the boats of the police."
    cells = "".join("<table:table-row>" + "".join(f'<table:table-cell table:style-name="c"><text:p text:style-name="{"r" if i > 1 and r else "Standard"}">{c}</text:p></table:table-cell>'
                    for i, c in enumerate(row)) + "</table:table-row>" for r, row in enumerate(TOLLS))
    styles = """<office:automatic-styles><style:style style:name="c" style:family="table-cell"><style:table-cell-properties fo:border="0.5pt solid #000000" fo:padding="0.1cm"/></style:style>
<style:style style:name="r" style:family="paragraph"><style:paragraph-properties fo:text-align="end"/></style:style></office:automatic-styles>"""
    body = f"""<office:body><office:text><text:p>{before}</text:p><table:table table:name="t"><table:table-column table:number-columns-repeated="4"/>{cells}</table:table><text:p>{after}</text:p></office:text></office:body>"""
    (work / "ruled.fodt").write_text(OFFICE % ("text", styles + body), encoding="utf-8")
    write("table-ruled.pdf", office("ruled.fodt", "pdf"), f"{before}\n\n{as_rows(TOLLS)}\n\n{after}")
    many = [("Year", "Month", "Level in cm", "Flow in m3/s", "Remark")] + [
        (str(1990 + i // 12), ["January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"][i % 12],
         str(180 + i * 37 % 400), f"{900 + i * 91 % 3000:,}", "flood" if i % 5 == 0 else "low water" if i % 7 == 0 else "") for i in range(70)]
    text = groff(".nr PS 10\n.PP\n" + before + "\n.TS H\nl l n n l.\n" + "\t".join(many[0]) + "\n.TH\n" + "\n".join("\t".join(r) for r in many[1:]) + "\n.TE\n.PP\n" + after + "\n", "-t")
    cut = lambda rows: "\n".join(" | ".join(r).rstrip(" |") for r in rows)
    write("table-open.pdf", text, f"{before}\n\n{cut(many)}\n\n{after}")


def pdf_without_tables():
    """What looks like a table and is none: contents with and without dots, lists, a form, notes, prose in two columns line by line, a poem."""
    chapters = [("1", "The source in the Alps", 1), ("1.1", "Glaciers and lakes", 3), ("1.2", "The gorge", 9), ("2", "The upper course", 17), ("2.1", "Locks and power stations", 21), ("3", "The mouth", 40)]
    page = [(60, 780, "Contents")]
    for i, (n, title, at) in enumerate(chapters):
        page += [(60, 760 - 14 * i, n), (90, 760 - 14 * i, title), (500, 760 - 14 * i, str(at))]
    for i, (n, title, at) in enumerate(chapters):
        page += [(60, 640 - 14 * i, f"{title} " + "." * (90 - len(title))), (500, 640 - 14 * i, str(at))]
    steps = ["Close the lower gate", "Open the sluices one by one", "Wait until the water stands level", "Open the upper gate"]
    for i, s in enumerate(steps):
        page += [(60, 520 - 14 * i, f"{i + 1}."), (90, 520 - 14 * i, s)]
    for i, s in enumerate(steps):
        page += [(60, 440 - 14 * i, "-"), (90, 440 - 14 * i, s)]
    for i, (k, v) in enumerate([("Name of vessel:", "Marie Celeste"), ("Home port:", "Antwerp"), ("Length:", "110 m"), ("Crew:", "5")]):
        page += [(60, 360 - 14 * i, k), (200, 360 - 14 * i, v)]
    for i, k in enumerate(["Date", "Place", "Signature"]):
        page += [(60, 280 - 18 * i, k), (150, 280 - 18 * i, "_" * 30), (380, 280 - 18 * i, "_" * 12)]
    lines_of = {}
    for side, text in ((60, RIVERS[0] + " " + RIVERS[1]), (310, RIVERS[2] + " " + RIVERS[3])):
        line, y = "", 210
        for word in text.split() + [""]:
            if len(line) + len(word) > 44 or not word:
                lines_of.setdefault(y, []).append((side, y, line.strip()))
                line, y = "", y - 12
            line += word + " "
    for y in sorted(lines_of, reverse=True):
        page += lines_of[y]
    write("not-tables.pdf", placed(*page), "\n".join(t for _, _, t in page))


def main():
    every = [columns, updated, form, attached, report, right_to_left, workbook, slides, charsets, pages, mail, books, tables, pdf_tables, pdf_without_tables]
    wanted = sys.argv[1:]  # names of those functions; all if there are none
    for make in every:
        if not wanted or make.__name__ in wanted:
            make()
    shutil.rmtree(work)


main()
