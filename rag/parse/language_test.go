package parse

import (
	"strings"
	"testing"
)

func TestLanguagesAreTold(t *testing.T) {
	for name, c := range map[string]struct {
		in   Input
		want string
	}{
		"English":  {Input{Content: []byte("The Rhine rises in the Alps and flows north through six countries, as everybody knows.")}, "en"},
		"Russian":  {Input{Content: encode(t, "windows-1251", "Рейн берёт начало в Альпах и течёт на север через шесть стран, как всем известно. Баржи возят по нему уголь и гравий, и если вода стоит низко, то они не могут взять полный груз. Об этом было сказано уже не раз.")}, "ru"},
		"German":   {Input{Content: []byte("<!doctype html><p>Der Rhein entspringt in den Alpen und fließt durch sechs Länder nach Norden, wie jeder weiß."), DeclaredType: TypeHTML}, "de"},
		"Japanese": {Input{Content: []byte("ライン川はアルプスに源を発し、六つの国を通って北へ流れる。")}, "ja"},
		"Chinese":  {Input{Content: []byte("莱茵河发源于阿尔卑斯山，流经六个国家。")}, "zh"},
		"short":    {Input{Content: []byte("Rhine")}, ""},
		"numbers":  {Input{Content: []byte(strings.Repeat("1233 ", 100))}, ""},
		"source":   {Input{Content: []byte("// The Rhine rises in the Alps and flows north through six countries.\npackage main\n"), Name: "a.go"}, ""},
	} {
		for range 3 { // the same each time
			if got := mustParse(t, c.in); got.Language != c.want {
				t.Errorf("%s: %q, not %q", name, got.Language, c.want)
			}
		}
	}
}
