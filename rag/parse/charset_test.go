package parse

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/net/html/charset"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/unicode/utf32"
	"pgregory.net/rapid"

	"github.com/waymarkhq/waymark/rag"
)

const (
	russian  = "Все люди рождаются свободными и равными в своём достоинстве и правах. Они наделены разумом и совестью и должны поступать в отношении друг друга в духе братства."
	japanese = "すべての人間は、生まれながらにして自由であり、かつ、尊厳と権利とについて平等である。人間は、理性と良心とを授けられており、互いに同胞の精神をもって行動しなければならない。"
	chinese  = "人人生而自由,在尊严和权利上一律平等。他们赋有理性和良心,并应以兄弟关系的精神相对待。人人有资格享有本宣言所载的一切权利和自由。"
	korean   = "모든 인간은 태어날 때부터 자유로우며 그 존엄과 권리에 있어 동등하다. 인간은 천부적으로 이성과 양심을 부여받았으며 서로 형제애의 정신으로 행동하여야 한다."
	french   = "Tous les êtres humains naissent libres et égaux en dignité et en droits. Ils sont doués de raison et de conscience et doivent agir les uns envers les autres dans un esprit de fraternité."
	greek    = "Όλοι οι άνθρωποι γεννιούνται ελεύθεροι και ίσοι στην αξιοπρέπεια και τα δικαιώματα. Είναι προικισμένοι με λογική και συνείδηση."
)

func encode(t testing.TB, name, text string) []byte {
	t.Helper()
	var e encoding.Encoding
	switch name {
	case "utf-32le":
		e = utf32.UTF32(utf32.LittleEndian, utf32.IgnoreBOM)
	case "utf-32be":
		e = utf32.UTF32(utf32.BigEndian, utf32.IgnoreBOM)
	default:
		if e, _ = charset.Lookup(name); e == nil {
			t.Fatalf("no charset %s", name)
		}
	}
	b, err := e.NewEncoder().Bytes([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestDeclaredCharsets(t *testing.T) {
	for name, text := range map[string]string{
		"windows-1251": russian, "koi8-r": russian, "shift_jis": japanese, "euc-jp": japanese, "iso-2022-jp": japanese, "gbk": chinese,
		"gb18030": chinese, "euc-kr": korean, "windows-1252": french, "iso-8859-1": french, "iso-8859-7": greek, "utf-16le": russian, "utf-16be": chinese,
		"utf-8": korean,
	} {
		got := mustParse(t, Input{Content: encode(t, name, text), DeclaredType: "text/plain; charset=" + name})
		if got.Body != text {
			t.Errorf("%s: %.60q %q", name, got.Body, got.Warnings)
		}
	}
}

func TestUndeclaredCharsetsAreTold(t *testing.T) {
	for name, text := range map[string]string{
		"windows-1251": russian, "koi8-r": russian, "shift_jis": japanese, "euc-jp": japanese, "iso-2022-jp": japanese, "gb18030": chinese,
		"euc-kr": korean, "windows-1252": french, "windows-1253": greek, "utf-16le": french, "utf-16be": russian,
	} {
		got := mustParse(t, Input{Content: encode(t, name, text)})
		if got.Body != text {
			t.Errorf("%s: %.60q %q", name, got.Body, got.Warnings)
		}
		if name != "iso-2022-jp" && len(got.Warnings) != 1 {
			t.Errorf("%s: nobody says that it was guessed: %q", name, got.Warnings)
		}
	}
}

func TestByteOrderMarksWinOverDeclarations(t *testing.T) {
	for name, mark := range map[string]string{
		"utf-16le": "\xff\xfe", "utf-16be": "\xfe\xff", "utf-32le": "\xff\xfe\x00\x00", "utf-32be": "\x00\x00\xfe\xff",
	} {
		content := append([]byte(mark), encode(t, name, japanese)...)
		if got := mustParse(t, Input{Content: content, DeclaredType: "text/plain; charset=iso-8859-1"}); got.Body != japanese {
			t.Errorf("%s: %.60q", name, got.Body)
		}
	}
}

func TestUTF8IsRecognisedUnderAWrongDeclaration(t *testing.T) {
	got := mustParse(t, Input{Content: []byte(french), DeclaredType: "text/plain; charset=ISO-8859-1"})
	if got.Body != french || len(got.Warnings) != 1 {
		t.Errorf("%.60q %q", got.Body, got.Warnings)
	}
	got = mustParse(t, Input{Content: encode(t, "windows-1251", russian), DeclaredType: "text/plain; charset=utf-8"})
	if got.Body != russian {
		t.Errorf("%.60q %q", got.Body, got.Warnings)
	}
}

func TestAPageNamesItsCharset(t *testing.T) {
	for _, head := range []string{
		`<meta charset="windows-1251">`, `<META content="text/html; charset=windows-1251" http-equiv="Content-Type">`,
		"<!--" + strings.Repeat(" ", 1500) + `--><meta charset=windows-1251>`,
	} {
		// Eight letters, too few to be told by their frequency.
		content := append([]byte("<html><head>"+head+"</head><body>"), encode(t, "windows-1251", "Ёжик шёл")...)
		if got := mustParse(t, Input{Content: content}); got.Body != "Ёжик шёл" || got.Type != TypeHTML {
			t.Errorf("%s: %q %q", head, got.Body, got.Type)
		}
	}
}

func TestBrokenBytesAreReplacedAndCounted(t *testing.T) {
	content := []byte(russian + "\xff\xfe" + russian + "\xd0")
	got := mustParse(t, Input{Content: content, DeclaredType: "text/plain; charset=utf-8"})
	if want := russian + "\ufffd\ufffd" + russian + "\ufffd"; got.Body != want || len(got.Warnings) != 1 || !strings.HasPrefix(got.Warnings[0], "3 bytes") {
		t.Errorf("%q %q", got.Body, got.Warnings)
	}
}

func TestUndeclaredUTF8MayHaveAFewBrokenBytes(t *testing.T) {
	if got := mustParse(t, Input{Content: []byte(russian + "\xff" + russian)}); got.Body != russian+"\ufffd"+russian {
		t.Errorf("%q %q", got.Body, got.Warnings)
	}
}

func TestASingleAccentTellsUTF8FromALatinDeclaration(t *testing.T) {
	if got := mustParse(t, Input{Content: []byte("café"), DeclaredType: "text/plain; charset=windows-1252"}); got.Body != "café" {
		t.Errorf("%q", got.Body)
	}
	// Two characters of GBK that are one of UTF-8 each: too few to contradict the sender.
	if got := mustParse(t, Input{Content: []byte("\xc4\xa3\xc4\xb1"), DeclaredType: "text/plain; charset=gbk"}); got.Body != "模谋" {
		t.Errorf("%q", got.Body)
	}
}

func TestAnyBytesGiveValidTextOrAReason(t *testing.T) {
	p := newParser(t)
	rapid.Check(t, func(rt *rapid.T) {
		in := Input{
			Content: rapid.OneOf(
				rapid.SliceOfN(rapid.Byte(), 1, 300),
				rapid.Map(rapid.StringN(1, 100, -1), func(s string) []byte { return []byte(s) }),
			).Draw(rt, "content"),
			DeclaredType: rapid.SampledFrom([]string{
				"", "text/plain", "text/plain; charset=utf-8", "text/plain; charset=shift_jis", "text/plain; charset=utf-16", "text/html; charset=big5",
				"text/markdown", TypeJSON, TypeJSONLines, "application/pdf", "text/plain; charset=nonsense", "; ;", "text/plain; charset=replacement",
			}).Draw(rt, "type"),
			Name: rapid.SampledFrom([]string{"", "a.txt", "a.md", "a.html", "a.json", "a.jsonl", "a.bin"}).Draw(rt, "name"),
		}
		text, err := p.Parse(t.Context(), in)
		checkOutcome(t, text, err)
		if err == nil && text.Type == TypePlain && utf8.Valid(in.Content) && in.DeclaredType == "text/plain; charset=utf-8" && text.Body != string(in.Content) {
			rt.Fatalf("%q became %q", in.Content, text.Body)
		}
	})
}

// checkOutcome asserts that a document was read or refused with a reason.
func checkOutcome(t testing.TB, text Text, err error) {
	t.Helper()
	if err == nil {
		checkText(t, text)
		return
	}
	var e *Error
	if !errors.As(err, &e) {
		t.Fatalf("not an *Error: %v", err)
	}
	switch e.Reason {
	case rag.ReasonEmptyText, rag.ReasonNoText, rag.ReasonUnsupportedType, rag.ReasonBrokenJSON, rag.ReasonTooLarge,
		rag.ReasonBrokenFile, rag.ReasonEncrypted, rag.ReasonArchiveBomb, rag.ReasonScanWithoutText:
	default:
		t.Fatalf("reason is %q", e.Reason)
	}
	if e.Message == "" || !utf8.ValidString(e.Message) {
		t.Fatalf("message is %q", e.Message)
	}
}
