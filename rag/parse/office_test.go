package parse

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/xuri/excelize/v2"

	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/rag/parse/parsetest"
)

func TestWordStructure(t *testing.T) {
	para, item := parsetest.WordParagraph, parsetest.WordItem
	row := func(cells ...string) string {
		s := "<w:tr>"
		for _, c := range cells {
			s += "<w:tc>" + c + "</w:tc>"
		}
		return s + "</w:tr>"
	}
	body := para("Title", "On rivers") + para("Heading1", "The Rhine") + para("", "It flows. ") + para("", "  ") + para("Own", "Mills") +
		item(1, 0, "one") + item(1, 1, "deep") + item(1, 0, "two") + item(2, 0, "first") + item(2, 1, "under") + item(2, 0, "second") + para("", "Then:") +
		"<w:tbl><w:tblPr/>" + row(para("", "Name"), para("", "km")) + row(para("", "Rhine")+para("", "(river)"), "<w:tbl>"+row(para("", "1,233"), para("", "long"))+"</w:tbl>") + "</w:tbl>" +
		para("Heading3", "End")
	text := mustParse(t, Input{Content: parsetest.Word(body), DeclaredType: "application/zip"})
	want := "h1: On rivers\nh1: The Rhine\nparagraph: It flows.\nh2: Mills\nlist: - one\n  - deep\n- two\n1. first\n  a. under\n2. second\n" +
		"paragraph: Then:\ntable: Name | km\nRhine (river) | 1,233 long\nh3: End\n"
	if got := outline(text); got != want || text.Title != "On rivers" || text.Type != TypeDOCX {
		t.Errorf("%q, %s:\n got %s\nwant %s", text.Title, text.Type, got, want)
	}
	if b := text.Blocks[len(text.Blocks)-1]; b.Heading != "The Rhine > Mills > End" {
		t.Errorf("breadcrumb %q", b.Heading)
	}
}

func TestWordTakesInsertedAndLeavesDeletedText(t *testing.T) {
	run := func(s string) string { return "<w:r><w:t xml:space='preserve'>" + s + "</w:t></w:r>" }
	body := "<w:p>" + run("The ") + "<w:ins>" + run("new ") + "</w:ins><w:del><w:r><w:delText>old </w:delText></w:r></w:del><w:moveFrom>" + run("moved ") + "</w:moveFrom>" +
		"<w:moveTo>" + run("here ") + "</w:moveTo>" + run("text") + "<w:r><w:rPr><w:vanish/></w:rPr><w:t>hidden</w:t></w:r>" +
		"<w:r><w:rPr><w:vanish w:val='0'/><w:rPrChange><w:rPr><w:vanish/></w:rPr></w:rPrChange></w:rPr><w:t>, shown</w:t></w:r>" +
		"<w:r><w:fldChar w:fldCharType='begin'/><w:instrText>PAGEREF x</w:instrText><w:fldChar w:fldCharType='separate'/></w:r>" + run(" 12") + "</w:p>"
	if text := mustParse(t, Input{Content: parsetest.Word(body)}); text.Body != "The new here text, shown 12" {
		t.Errorf("%q", text.Body)
	}
}

func TestWordBoxesAndNotesFollowTheirParagraph(t *testing.T) {
	box := "<mc:AlternateContent><mc:Choice><wps:txbx><w:txbxContent>" + parsetest.WordParagraph("", "In a box.") + "</w:txbxContent></wps:txbx></mc:Choice>" +
		"<mc:Fallback><w:txbxContent>" + parsetest.WordParagraph("", "In a box.") + "</w:txbxContent></mc:Fallback></mc:AlternateContent>"
	body := "<w:p><w:r><w:t>Before</w:t></w:r><w:r>" + box + "</w:r><w:r><w:footnoteReference w:id='1'/></w:r><w:r><w:t> and after.</w:t></w:r><w:r><w:endnoteReference w:id='2'/></w:r></w:p>" +
		parsetest.WordParagraph("", "Next.")
	text := mustParse(t, Input{Content: parsetest.Word(body, parsetest.File{Name: "word/footnotes.xml", Content: parsetest.WordNotes("footnote", "A note.")},
		parsetest.File{Name: "word/endnotes.xml", Content: parsetest.WordNotes("endnote", "No.", "At the end.")})})
	want := "paragraph: Before[1] and after.[2]\nparagraph: In a box.\nparagraph: [1] A note.\nparagraph: [2] At the end.\nparagraph: Next.\n"
	if got := outline(text); got != want {
		t.Errorf("got %s", got)
	}
	broken := mustParse(t, Input{Content: parsetest.Word(body, parsetest.File{Name: "word/footnotes.xml", Content: "<w:footnotes><"})})
	if len(broken.Warnings) != 1 || !strings.Contains(broken.Body, "Next.") {
		t.Errorf("with damaged notes: %q, %q", broken.Warnings, broken.Body)
	}
}

func TestSlidesArePages(t *testing.T) {
	shape := parsetest.SlideShape
	table := "<p:graphicFrame><a:tbl><a:tr><a:tc><a:txBody><a:p><a:r><a:t>a</a:t></a:r></a:p></a:txBody></a:tc><a:tc><a:txBody><a:p><a:r><a:t>b</a:t></a:r></a:p></a:txBody></a:tc></a:tr></a:tbl></p:graphicFrame>"
	text := mustParse(t, Input{Content: parsetest.Slides([]string{
		shape("sldNum", "1") + shape("subTitle", "By us") + shape("ctrTitle", "Rivers"),
		shape("title", "Mills") + shape("", "Wind", "\tSteam") + table + shape("-", "A text box.") + shape("ftr", "Confidential"),
		"<p:sp><",
	}, map[int]string{1: "Say this."})})
	want := "h1: Rivers\nparagraph: By us\nh1: Mills\nlist: - Wind\n  - Steam\ntable: a | b\nparagraph: A text box.\nparagraph: Say this.\n"
	if got := outline(text); got != want || text.Title != "Rivers" || text.Type != TypePPTX {
		t.Errorf("%q: %s", text.Title, got)
	}
	if len(text.Warnings) != 1 || !strings.Contains(text.Warnings[0], "Slide 3") {
		t.Errorf("%q", text.Warnings)
	}
	if text.Blocks[0].Page != 1 || text.Blocks[3].Page != 2 {
		t.Errorf("%+v", text.Blocks)
	}
}

// workbook packs sheets of rows; a sheet whose name begins with a dot is hidden.
func workbook(t testing.TB, sheets map[string][][]any, order ...string) []byte {
	t.Helper()
	f := excelize.NewFile()
	defer f.Close()
	for i, name := range order {
		if i == 0 {
			if err := f.SetSheetName("Sheet1", name); err != nil {
				t.Fatal(err)
			}
		} else if _, err := f.NewSheet(name); err != nil {
			t.Fatal(err)
		}
		for r, row := range sheets[name] {
			cell, err := excelize.CoordinatesToCellName(1, r+1)
			if err != nil {
				t.Fatal(err)
			}
			if err := f.SetSheetRow(name, cell, &row); err != nil {
				t.Fatal(err)
			}
		}
		if strings.HasPrefix(name, ".") {
			if err := f.SetSheetVisible(name, false); err != nil {
				t.Fatal(err)
			}
		}
	}
	var b bytes.Buffer
	if err := f.Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestWorkbookRowsAndTheirHeader(t *testing.T) {
	rows := [][]any{{"Rivers of Europe"}, {}, {"Name", "Length in km"}}
	for range 60 {
		rows = append(rows, []any{"Rhine and Danube", 1233})
	}
	content := workbook(t, map[string][][]any{"Data": rows, "Empty": nil, ".Secret": {{"a", "b"}}}, "Data", "Empty", ".Secret")
	text := mustParse(t, Input{Content: content})
	if !strings.HasPrefix(outline(text), "h1: Data\nparagraph: Rivers of Europe\ntable: Name | Length in km\nRhine and Danube | 1233\n") || text.Type != TypeXLSX {
		t.Errorf("%s", outline(text))
	}
	tables := 0
	for _, b := range text.Blocks {
		if b.Kind != rag.BlockTable {
			continue
		}
		tables++
		if s := text.Body[b.Start:b.End]; !strings.HasPrefix(s, "Name | Length in km\nRhine") || len(s) > 800 {
			t.Errorf("table %q", s)
		}
	}
	if tables < 3 || strings.Count(text.Body, "Rhine and Danube | 1233") != 60 {
		t.Errorf("%d tables of %d rows", tables, strings.Count(text.Body, "Rhine"))
	}
	if len(text.Warnings) != 1 || !strings.Contains(text.Warnings[0], ".Secret") || strings.Contains(text.Body, "Empty") {
		t.Errorf("%q", text.Warnings)
	}
}

func TestWorkbookValuesOfFormulasAndDates(t *testing.T) {
	f := excelize.NewFile()
	defer f.Close()
	style, err := f.NewStyle(&excelize.Style{NumFmt: 14})
	if err != nil {
		t.Fatal(err)
	}
	for cell, v := range map[string]any{"A1": "Day", "B1": "Sum", "A2": time.Date(2024, 5, 17, 0, 0, 0, 0, time.UTC), "B2": 42.5} {
		if err := f.SetCellValue("Sheet1", cell, v); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.SetCellStyle("Sheet1", "A2", "A2", style); err != nil {
		t.Fatal(err)
	}
	if err := f.SetCellFormula("Sheet1", "B2", "40+2.5"); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := f.Write(&b); err != nil {
		t.Fatal(err)
	}
	text := mustParse(t, Input{Content: b.Bytes()})
	if !strings.Contains(text.Body, "Day | Sum\n05-17-24 | 42.5") && !strings.Contains(text.Body, "Day | Sum\n5/17/24 | 42.5") {
		t.Errorf("%q", text.Body)
	}
}

func TestOfficeDocumentsThatCannotBeRead(t *testing.T) {
	sound := parsetest.Word(parsetest.WordParagraph("", "Text."))
	bomb := parsetest.Word(parsetest.WordParagraph("", strings.Repeat("a ", 9<<20)))
	many := make([]parsetest.File, 10_001)
	for i := range many {
		many[i].Name = "word/document.xml"
	}
	for _, c := range []struct {
		name    string
		content []byte
		file    string
		reason  string
	}{
		{"cut", sound[:len(sound)/2], "a.docx", rag.ReasonBrokenFile},
		{"no XML", parsetest.Zip(parsetest.File{Name: "word/document.xml", Content: "<w:document><w:p"}), "", rag.ReasonBrokenFile},
		{"ratio", bomb, "", rag.ReasonArchiveBomb},
		{"entries", parsetest.Zip(many...), "", rag.ReasonArchiveBomb},
		{"empty", parsetest.Word(""), "", rag.ReasonNoText},
		{"encrypted", append([]byte("\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"), encryptedPackage...), "a.docx", rag.ReasonEncrypted},
		{"no workbook", parsetest.Zip(parsetest.File{Name: "xl/workbook.xml", Content: "<workbook"}), "", rag.ReasonBrokenFile},
		{"no slides", parsetest.Zip(parsetest.File{Name: "ppt/presentation.xml", Content: "<x/>"}), "", rag.ReasonNoText},
		{"archive", parsetest.Zip(parsetest.File{Name: "a.txt", Content: "a"}), "a.zip", rag.ReasonUnsupportedType},
		{"OpenDocument", parsetest.Zip(parsetest.File{Name: "mimetype", Content: "application/vnd.oasis.opendocument.text"}), "", rag.ReasonUnsupportedType},
	} {
		if reason, message := reasonOf(t, Input{Content: c.content, Name: c.file}); reason != c.reason {
			t.Errorf("%s: %s (%s)", c.name, reason, message)
		}
	}
}

// Files that other programs have made.
func TestFilesOfOtherPrograms(t *testing.T) {
	for _, name := range []string{"rivers.docx", "rivers.pptx"} {
		content, err := os.ReadFile("testdata/files/" + name)
		if err != nil {
			t.Fatal(err)
		}
		text := mustParse(t, Input{Content: content})
		for _, want := range []string{"Rivers of Europe", "The Rhine rises in the Alps", "Danube", "2,850", "mills", "Реки текут"} {
			if !strings.Contains(text.Body, want) {
				t.Errorf("%s: %q is not in\n%s", name, want, outline(text))
			}
		}
		kinds := map[rag.BlockKind]int{}
		for _, b := range text.Blocks {
			kinds[b.Kind]++
		}
		if kinds[rag.BlockHeading] < 2 || kinds[rag.BlockTable] < 1 || kinds[rag.BlockList] < 1 {
			t.Errorf("%s: %v\n%s", name, kinds, outline(text))
		}
	}
}
