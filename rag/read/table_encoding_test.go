package read_test

import (
	"strings"
	"testing"

	"github.com/waymarkhq/waymark/rag/read"
)

// The bytes of a table that are not UTF-8 far from its beginning are read as those of a text are: in the charset that they are in,
// or replaced, and told.
func TestTablesWhoseAccentsComeLate(t *testing.T) {
	head := strings.Repeat("12,Rhine,north\n", 20*window/15)
	for name, c := range map[string]struct{ tail, want, warning string }{
		"late accents": {strings.Repeat("13,Rhein,\"fließt für Schiffe über Straßen\"\n", 200), "fließt für Schiffe über Straßen", "windows-1252"},
		"damaged":      {"13,Rhein,ok\n", "ok", ""},
	} {
		content := head + encode(t, "windows-1252", c.tail)
		if name == "damaged" {
			content = strings.Repeat("12,Rhône,Süden\n", 20*window/15) + "13,\xff\xfe,ok\n" + strings.Repeat("12,Rhône,Süden\n", window/15)
			c.warning = "2 bytes are not valid UTF-8"
		}
		in := read.Input{Open: (&opener{content: content}).open, Size: int64(len(content)), DeclaredType: "text/csv"}
		r := newReader(t, read.Options{})
		d, err := r.Read(t.Context(), in)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		text := textOf(t, r, in)
		if !strings.Contains(text, c.want) {
			t.Errorf("%s: the text lacks %q", name, c.want)
		}
		covers(t, text, d)
		if got := strings.Join(d.Warnings, " "); !strings.Contains(got, c.warning) {
			t.Errorf("%s: warnings %q", name, got)
		}
	}
}

// However little of the other charset is read at first, it is told by what follows too.
func TestCharsetOfATableIsToldByEnough(t *testing.T) {
	const row = "12,Rhine,north\n"
	tail := strings.Repeat("13,Рейн,\""+russian+"\"\n", 200)
	for _, declared := range []string{"text/csv", "text/csv; charset=utf-8"} {
		for _, before := range []int{1, 3, 10, 40, 400} { // bytes of the tail that end a block of 4 KiB
			ascii := 20 * window
			head := strings.Repeat(row, (ascii-before)/len(row))
			head += strings.Repeat("1", ascii-before-len(head)-1) + "\n"
			content := head + encode(t, "windows-1251", tail)
			in := read.Input{Open: (&opener{content: content}).open, Size: int64(len(content)), DeclaredType: declared}
			if text := textOf(t, newReader(t, read.Options{}), in); strings.Count(text, russian) != 200 {
				t.Errorf("%s, %d bytes: the text has %d of 200 sentences", declared, before, strings.Count(text, russian))
			}
		}
	}
}

// A damaged byte in a part that is plain otherwise does not change the charset of all the rest.
func TestDamageAmongPlainWordsIsNoOtherCharset(t *testing.T) {
	plain := strings.Repeat("Plain words of a log.\n\n", 20*window/22)
	rows := strings.Repeat("12,Rhine,north\n", 20*window/15)
	for declared, content := range map[string]string{
		"text/plain": plain + paragraphs(2*window, russian) + plain + "bad \xff byte\n\n" + plain,
		"text/csv":   rows + strings.Repeat("13,Рейн,\""+russian+"\"\n", 50) + rows + "14,bad \xff byte,x\n" + rows,
	} {
		in := read.Input{Open: (&opener{content: content}).open, Size: int64(len(content)), DeclaredType: declared}
		text := textOf(t, newReader(t, read.Options{}), in)
		if !strings.Contains(text, russian) || !strings.Contains(text, "bad \ufffd byte") {
			t.Errorf("%s is read in another charset", declared)
		}
	}
}
