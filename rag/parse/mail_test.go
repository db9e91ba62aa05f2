package parse

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/rag/parse/parsetest"
)

const mailHeaders = "From: =?utf-8?q?J=C3=BCrgen?= <j@example.org>\r\nTo: Ann <a@example.org>\r\nDate: Mon, 4 Mar 2024 10:00:00 +0100\r\n" +
	"Message-ID: <1@example.org>\r\nMIME-Version: 1.0\r\n"

func part(headers, body string) string { return headers + "\r\n\r\n" + body + "\r\n" }

// multi is a part of parts.
func multi(kind, boundary string, parts ...string) string {
	s := fmt.Sprintf("Content-Type: multipart/%s; boundary=%q\r\n\r\nA preamble.\r\n", kind, boundary)
	for _, p := range parts {
		s += "--" + boundary + "\r\n" + p
	}
	return s + "--" + boundary + "--\r\n"
}

func base64Lines(content []byte) string {
	s := base64.StdEncoding.EncodeToString(content)
	var b strings.Builder
	for len(s) > 76 {
		b.WriteString(s[:76] + "\r\n")
		s = s[76:]
	}
	return b.String() + s
}

func TestMailIsToldAndRead(t *testing.T) {
	subject := "Subject: =?windows-1251?B?z/Do4uXy?=\r\n =?UTF-8?Q?_und_Gr=C3=BC=C3=9Fe?=\r\n"
	content := mailHeaders + subject + part("Content-Type: text/plain; charset=koi8-r\r\nContent-Transfer-Encoding: quoted-printable", "=F0=D2=C9=D7=C5=D4,=20=\r\n=CD=C9=D2.\r\n\r\nEnd.")
	want := "h1: Привет und Grüße\nparagraph: From: Jürgen <j@example.org>\nTo: Ann <a@example.org>\nDate: Mon, 4 Mar 2024 10:00:00 +0100\nparagraph: Привет, мир.\nparagraph: End.\n"
	for _, in := range []Input{{}, {DeclaredType: "message/rfc822"}, {Name: "a.eml"}, {DeclaredType: "application/octet-stream", Name: "x"}} {
		in.Content = []byte(content)
		text := mustParse(t, in)
		if got := outline(text); got != want || text.Type != TypeMail || text.Title != "Привет und Grüße" {
			t.Errorf("%q, %s:\n got %s\nwant %s", text.Title, text.Type, got, want)
		}
	}
	if text := mustParse(t, Input{Content: []byte(content), DeclaredType: "text/plain"}); text.Type != TypePlain {
		t.Errorf("declared as text: %s", text.Type)
	}
	for _, other := range []string{"From: me\nTo: you\n\nA note.", "Note: this\nis text", "Received a letter.\n", "Name: x\nFrom : y\n"} {
		if text := mustParse(t, Input{Content: []byte(other)}); text.Type != TypePlain {
			t.Errorf("%q: %s", other, text.Type)
		}
	}
}

func TestMailPartsAreReadWithTheirOwnTypes(t *testing.T) {
	docx := parsetest.Word(parsetest.WordParagraph("Heading1", "Plan") + parsetest.WordParagraph("", "Build a mill."))
	inner := strings.Replace(mailHeaders, "J=C3=BCrgen", "Bob", 1) + "Subject: Older\r\n" + part("Content-Type: text/plain", "What was said before.")
	body := multi("alternative", "b2", part("Content-Type: text/plain", "Plain words."),
		multi("related", "b3", part("Content-Type: text/html; charset=utf-8", "<h2>Rich</h2><p>Rich words.<ul><li>one</ul>"), part("Content-Type: image/png\r\nContent-Disposition: inline; filename=a.png", "\x89PNG\r\n\x1a\n")))
	content := mailHeaders + "Subject: All\r\n" + multi("mixed", "b1", body,
		part("Content-Type: application/octet-stream\r\nContent-Transfer-Encoding: base64\r\nContent-Disposition: attachment; filename*=utf-8''pl%C3%A4n.docx", base64Lines(docx)),
		part("Content-Type: text/csv; name=\"=?utf-8?q?t=C3=A4b.csv?=\"\r\nContent-Disposition: attachment", "a,b\r\n1,2"),
		part("Content-Type: message/rfc822", inner))
	text := mustParse(t, Input{Content: []byte(content)})
	want := "h1: All\nparagraph: From: Jürgen <j@example.org>\nTo: Ann <a@example.org>\nDate: Mon, 4 Mar 2024 10:00:00 +0100\nh3: Rich\nparagraph: Rich words.\nlist: - one\n" +
		"h2: Attachment: plän.docx\nh3: Plan\nparagraph: Build a mill.\nh2: Attachment: täb.csv\ntable: a | b\n1 | 2\n" +
		"h2: Attachment: message/rfc822\nh3: Older\nparagraph: From: Bob <j@example.org>\nTo: Ann <a@example.org>\nDate: Mon, 4 Mar 2024 10:00:00 +0100\nparagraph: What was said before.\n"
	if got := outline(text); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if len(text.Warnings) != 1 || !strings.Contains(text.Warnings[0], "a.png") {
		t.Errorf("warnings %q", text.Warnings)
	}
}

func TestMailWithDamagedParts(t *testing.T) {
	content := mailHeaders + "Subject: x\r\n" + multi("mixed", "b", part("Content-Type: text/plain", "Words."),
		part("Content-Type: application/pdf\r\nContent-Disposition: attachment; filename=a.pdf\r\nContent-Transfer-Encoding: base64", base64Lines([]byte("%PDF-1.4\nbroken"))))
	for name, cut := range map[string]string{"whole": content, "cut": content[:len(content)-14]} {
		text := mustParse(t, Input{Content: []byte(cut)})
		if !strings.Contains(text.Body, "Words.") || len(text.Warnings) == 0 || !strings.Contains(strings.Join(text.Warnings, " "), "a.pdf") {
			t.Errorf("%s: %q %q", name, text.Body, text.Warnings)
		}
	}
	deep := "Words."
	for range 30 {
		deep = mailHeaders + part("Content-Type: message/rfc822", deep)
	}
	text := mustParse(t, Input{Content: []byte(deep)})
	if len(text.Warnings) == 0 {
		t.Errorf("messages in messages: %q", text.Body)
	}
	if reason, _ := reasonOf(t, Input{Content: []byte("Subject: \r\n\r\n"), DeclaredType: "message/rfc822"}); reason != rag.ReasonNoText {
		t.Errorf("nothing in it: %s", reason)
	}
}
