package parse

import (
	"path"
	"strings"
)

// mailHead bounds the headers that are looked at to tell a message, in bytes.
const mailHead = 16 << 10

// isMail reports whether content is an e-mail message: it was called one and begins with a header, or begins with headers that
// only mail programs write.
func isMail(content []byte, declared, name string) bool {
	head := string(content[:min(len(content), mailHead)])
	if strings.HasPrefix(head, "From ") { // the first line of a message in a mailbox
		_, head, _ = strings.Cut(head, "\n")
	}
	seen := map[string]bool{}
	for line := range strings.SplitSeq(head, "\n") {
		line = strings.TrimRight(line, "\r")
		if line == "" {
			break
		}
		if line[0] == ' ' || line[0] == '\t' {
			if len(seen) == 0 {
				return false
			}
			continue
		}
		key, _, found := strings.Cut(line, ":")
		if !found || !isHeaderName(key) {
			return false
		}
		seen[strings.ToLower(key)] = true
	}
	if len(seen) == 0 {
		return false
	}
	if declared == TypeMail || readable[declared] == TypeMail || declared == "" && strings.EqualFold(path.Ext(name), ".eml") {
		return seen["from"] || seen["subject"] || seen["date"] || seen["content-type"] || seen["received"] || seen["to"]
	}
	return (seen["from"] || seen["received"]) && (seen["message-id"] || seen["mime-version"] || seen["received"]) &&
		(seen["date"] || seen["subject"] || seen["to"])
}

func isHeaderName(s string) bool {
	for i := range len(s) {
		if c := s[i]; c <= ' ' || c >= 0x7f {
			return false
		}
	}
	return s != ""
}
