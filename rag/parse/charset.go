package parse

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/wlynxg/chardet"
	"golang.org/x/net/html/charset"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/unicode/utf32"
)

// decoded is content as valid UTF-8.
type decoded struct {
	text     string
	warnings []string
	charset  encoding.Encoding // of the content; nil if that is UTF-8
	name     string            // of the charset
	skip     int               // bytes of a mark before the text
	replaced int               // characters that were not valid; the first warning says so
}

// decode reads content as text: in the charset of its byte order mark, else in the declared one, else in the one it
// names itself (a meta tag), else in UTF-8, else in the one it looks like. It reports false for what is not text.
//
// isText says that the sender has declared text of some kind: control characters alone do not make it binary then.
func decode(content []byte, label string, isText bool) (decoded, bool) {
	if d, ok := decodeMarked(content); ok {
		return d, true
	}
	if label == "" {
		label = namedCharset(content)
	}
	if d, ok := decodeDeclared(content, label); ok && (isText || !binary(content) || wide(label)) {
		return d, true
	}
	if d, ok := decodeUTF16(content); ok {
		return d, true
	}
	if bytes.Contains(content, []byte("\x1b$")) {
		if d, ok := decodeAs(content, "iso-2022-jp"); ok {
			return d, true
		}
	}
	invalid, multibyte := brokenUTF8(content)
	if invalid == 0 {
		return decoded{text: string(content)}, isText || !binary(content)
	}
	if binary(content) {
		return decoded{}, false
	}
	if invalid*10 <= multibyte {
		return replaceInvalid(content, invalid), true
	}
	return decodeGuessed(content), true
}

// decodeMarked decodes what begins with a byte order mark. That of UTF-8 stays: it is part of the text's bytes.
func decodeMarked(content []byte) (decoded, bool) {
	switch {
	case bytes.HasPrefix(content, []byte("\xef\xbb\xbf")):
		invalid, _ := brokenUTF8(content)
		return replaceInvalid(content, invalid), true
	case bytes.HasPrefix(content, []byte("\xff\xfe\x00\x00")):
		return behindMark(4)(decodeWith(content[4:], utf32.UTF32(utf32.LittleEndian, utf32.IgnoreBOM), "utf-32le"))
	case bytes.HasPrefix(content, []byte("\x00\x00\xfe\xff")):
		return behindMark(4)(decodeWith(content[4:], utf32.UTF32(utf32.BigEndian, utf32.IgnoreBOM), "utf-32be"))
	case bytes.HasPrefix(content, []byte("\xff\xfe")):
		return behindMark(2)(decodeAs(content[2:], "utf-16le"))
	case bytes.HasPrefix(content, []byte("\xfe\xff")):
		return behindMark(2)(decodeAs(content[2:], "utf-16be"))
	}
	return decoded{}, false
}

// behindMark notes that the text begins behind a mark of n bytes.
func behindMark(n int) func(decoded, bool) (decoded, bool) {
	return func(d decoded, ok bool) (decoded, bool) {
		d.skip = n
		return d, ok
	}
}

// decodeDeclared decodes content in the charset that the sender named, unless the content contradicts it.
func decodeDeclared(content []byte, label string) (decoded, bool) {
	label = strings.ToLower(strings.TrimSpace(label))
	if label == "" {
		return decoded{}, false
	}
	e, name := charset.Lookup(label)
	if e == nil {
		return decoded{}, false
	}
	invalid, multibyte := brokenUTF8(content)
	if name == "utf-8" {
		if invalid > 3 && invalid*10 > multibyte {
			return decoded{}, false
		}
		return replaceInvalid(content, invalid), true
	}
	// Nothing is UTF-8 by chance: not a single accent in a charset of one byte, not twenty characters in others. A server's
	// default charset on UTF-8 text is common.
	chance := 20
	if strings.HasPrefix(name, "windows-") || strings.HasPrefix(name, "iso-8859-") {
		chance = 0
	}
	if invalid == 0 && multibyte > chance {
		warning := fmt.Sprintf("The charset was declared as %s, but the text is UTF-8.", name)
		return decoded{text: string(content), warnings: []string{warning}}, true
	}
	return decodeAs(content, name)
}

// wide reports whether the charset has NUL bytes in ordinary text.
func wide(label string) bool { return strings.HasPrefix(strings.ToLower(label), "utf-16") }

// decodeUTF16 recognises UTF-16 without a byte order mark: its ASCII characters, spaces and line breaks at least, have
// their NUL byte on the same side.
func decodeUTF16(content []byte) (decoded, bool) {
	var zeros [2]int
	for i, b := range content {
		if b == 0 {
			zeros[i%2]++
		}
	}
	name, side := "utf-16le", 1
	if zeros[0] > zeros[1] {
		name, side = "utf-16be", 0
	}
	if zeros[side] == 0 || utf8.Valid(content) && !fewBlocks(content, side) {
		return decoded{}, false // no NUL bytes, or ASCII with a few of them
	}
	d, ok := decodeAs(content, name)
	if !ok || !plausible(d.text) {
		return decoded{}, false
	}
	d.warnings = append(d.warnings, fmt.Sprintf("No charset was declared; the text was read as %s.", strings.ToUpper(name)))
	return d, true
}

// fewBlocks reports whether nearly all high bytes of UTF-16 are two values: those of ASCII and of one more alphabet.
func fewBlocks(content []byte, side int) bool {
	var counts [256]int
	for i := side; i < len(content); i += 2 {
		counts[content[i]]++
	}
	slices.Sort(counts[:])
	return (counts[255]+counts[254])*20 >= len(content)/2*19
}

// guessSample bounds what the charset detector looks at.
const guessSample = 64 << 10

// decodeGuessed decodes in the charset that content looks like; where that is not clear in Windows-1252, in which every
// byte is a character.
func decodeGuessed(content []byte) decoded {
	from := max(0, bytes.IndexFunc(content, func(r rune) bool { return r >= utf8.RuneSelf })-256)
	guess := chardet.Detect(content[from:min(len(content), from+guessSample)])
	name, ok := acceptable(guess)
	var d decoded
	if ok {
		d, ok = decodeAs(content, name)
	}
	if !ok {
		name = "windows-1252"
		d, _ = decodeWith(content, mustLookup(name), name)
	}
	d.warnings = append(d.warnings, fmt.Sprintf("No charset was declared; the text was read as %s, as it looks like.", name))
	return d
}

// acceptable turns a guess into a charset that x/text knows, if it is sure enough. The detector is good at scripts
// other than Latin, and takes one Latin charset for another.
func acceptable(guess chardet.Result) (string, bool) {
	name := strings.ToLower(guess.Encoding)
	switch name {
	case "gb2312":
		name = "gb18030" // its superset
	case "cp932":
		name = "shift_jis"
	case "cp949":
		name = "euc-kr"
	case "maccyrillic":
		name = "windows-1251" // nearly the same letters, and a thousand times as common
	}
	switch name {
	case "gb18030", "shift_jis", "big5", "euc-kr", "euc-jp":
		return name, guess.Confidence > 0.5
	case "windows-1251", "koi8-r", "iso-8859-5", "ibm866", "windows-1253", "iso-8859-7", "windows-1255",
		"iso-8859-8", "tis-620", "windows-1256", "iso-8859-6":
		return name, guess.Confidence > 0.8
	}
	return "", false
}

func mustLookup(name string) encoding.Encoding {
	e, _ := charset.Lookup(name)
	return e
}

func decodeAs(content []byte, name string) (decoded, bool) {
	e, _ := charset.Lookup(name)
	if e == nil {
		return decoded{}, false
	}
	return decodeWith(content, e, name)
}

// decodeWith decodes content; it fails when more than one character in fifty has no meaning in the charset.
func decodeWith(content []byte, e encoding.Encoding, name string) (decoded, bool) {
	b, err := e.NewDecoder().Bytes(content)
	if err != nil {
		return decoded{}, false
	}
	text := strings.ToValidUTF8(string(b), "\ufffd")
	broken := strings.Count(text, "\ufffd")
	if broken*50 > utf8.RuneCountInString(text) {
		return decoded{}, false
	}
	d := decoded{text: text, charset: e, name: name, replaced: broken}
	if broken > 0 {
		d.warnings = []string{replacedWarning(broken, name)}
	}
	return d, true
}

func replacedWarning(n int, charset string) string {
	if charset == "" {
		return fmt.Sprintf("%d bytes are not valid UTF-8 and were replaced.", n)
	}
	return fmt.Sprintf("%d characters are not valid %s and were replaced.", n, charset)
}

// brokenUTF8 counts sequences that are not UTF-8, and valid characters of more than one byte.
func brokenUTF8(content []byte) (invalid, multibyte int) {
	for i := 0; i < len(content); {
		if content[i] < utf8.RuneSelf {
			i++
			continue
		}
		r, n := utf8.DecodeRune(content[i:])
		if r == utf8.RuneError && n == 1 {
			invalid++
		} else {
			multibyte++
		}
		i += n
	}
	return invalid, multibyte
}

func replaceInvalid(content []byte, invalid int) decoded {
	if invalid == 0 {
		return decoded{text: string(content)}
	}
	// Through []rune, because every broken byte is to become one mark, as in Go's own conversions.
	return decoded{
		text:     string([]rune(string(content))),
		warnings: []string{replacedWarning(invalid, "")},
		replaced: invalid,
	}
}

// binary reports whether content has control bytes that no text has: one near its beginning, or many.
func binary(content []byte) bool {
	n := 0
	for i, b := range content {
		if b <= 8 || b == 0x0b || b >= 0x0e && b <= 0x1a || b >= 0x1c && b <= 0x1f {
			if i < 4096 {
				return true
			}
			n++
		}
	}
	return n*1000 > len(content)
}

// plausible reports whether nearly all of a decoded text are characters that texts have.
func plausible(text string) bool {
	n, odd := 0, 0
	for _, r := range text {
		if n++; r == utf8.RuneError || !unicode.IsGraphic(r) && !unicode.IsSpace(r) && !unicode.Is(unicode.Cf, r) {
			odd++
		}
	}
	return odd*20 <= n
}

// metaCharset finds the charset that an HTML or XML document names in its first 4 KiB.
var metaCharset = regexp.MustCompile(`(?i)<(?:meta\s[^>]*charset|\?xml\s[^>]*encoding)\s*=\s*["']?\s*([a-z0-9_:.-]+)`)

func namedCharset(content []byte) string {
	head := bytes.TrimLeft(content[:min(len(content), 4096)], " \t\r\n")
	if !bytes.HasPrefix(head, []byte("<")) {
		return "" // a text about HTML
	}
	m := metaCharset.FindSubmatch(head)
	if m == nil || wide(string(m[1])) { // it was read as ASCII just now
		return ""
	}
	return string(m[1])
}
