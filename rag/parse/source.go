package parse

import (
	"context"
	"path"
	"strings"

	"github.com/waymarkhq/waymark/rag"
)

// sourceExtensions are those of source code and of what is read like it.
var sourceExtensions = words(`.go .py .pyi .js .mjs .cjs .jsx .ts .tsx .vue .svelte .java .kt .kts .scala .groovy .gradle .c .h .cc .cpp .cxx
	.hh .hpp .m .mm .cs .fs .vb .rs .rb .php .pl .pm .lua .r .jl .swift .dart .zig .nim .d .hs .ml .mli .ex .exs .erl .hrl .clj .cljs
	.lisp .el .scm .sh .bash .zsh .fish .ps1 .bat .cmd .sql .proto .thrift .graphql .css .scss .less .yaml .yml .toml .ini .cfg
	.conf .properties .tf .hcl .cmake .mk .asm .s .f90 .f .pas .v .sv .vhd .sol .diff .patch`)

// sourceNames are files of source code that have no extension.
var sourceNames = words("dockerfile makefile gnumakefile jenkinsfile rakefile gemfile vagrantfile procfile cmakelists.txt go.mod")

// sourceTypes are the declared types of source code.
var sourceTypes = words(`text/x-source text/javascript application/javascript application/x-javascript text/css application/sql text/x-go text/x-python
	text/x-java-source text/x-java text/x-c text/x-csrc text/x-c++src text/x-sh application/x-sh text/x-rust text/x-ruby application/yaml
	application/x-yaml text/yaml application/toml application/x-php text/x-php application/typescript text/x-typescript text/x-script.python`)

func words(s string) map[string]bool {
	set := map[string]bool{}
	for _, w := range strings.Fields(s) {
		set[w] = true
	}
	return set
}

// isSource reports whether a text was named as source code. Its content does not say so reliably.
func isSource(declared, name string) bool {
	base := strings.ToLower(path.Base(name))
	return sourceTypes[declared] || sourceExtensions[path.Ext(base)] || sourceNames[base]
}

// codeBlock is how large a block of source code is at least, in bytes, before it ends at a border.
const codeBlock = 150

// source reads source code: its text as it stands, in blocks of code that end before a line that begins at the margin behind a
// blank one, where functions and types mostly begin.
func (p *Parser) source(_ context.Context, s source) (Text, error) {
	text := s.text
	var blocks []rag.Block
	start, end, blank := -1, 0, false
	flush := func() {
		if start >= 0 {
			blocks = append(blocks, rag.Block{Start: start, End: end, Kind: rag.BlockCode})
		}
		start = -1
	}
	for pos := 0; pos < len(text); {
		next := len(text)
		if i := strings.IndexByte(text[pos:], '\n'); i >= 0 {
			next = pos + i + 1
		}
		line := strings.TrimRight(text[pos:next], " \t\r\n")
		switch {
		case strings.TrimSpace(line) == "":
			blank = true
		default:
			margin := !strings.HasPrefix(line, " ") && !strings.HasPrefix(line, "\t") && !strings.HasPrefix(line, "}") && !strings.HasPrefix(line, ")")
			if start >= 0 && blank && margin && end-start >= codeBlock && len(blocks) < maxBlocks-1 {
				flush()
			}
			if start < 0 {
				start = pos
			}
			end, blank = pos+len(line), false
		}
		pos = next
	}
	flush()
	return Text{Body: text, Blocks: blocks}, nil
}
