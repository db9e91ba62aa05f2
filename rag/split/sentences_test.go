package split

import (
	"context"
	"slices"
	"strings"
	"testing"
)

func TestSentences(t *testing.T) {
	for text, want := range map[string][]string{
		"One. Two! Three? Four":                          {"One.", "Two!", "Three?", "Four"},
		"Mr. Smith met Dr. Jones. They left.":            {"Mr. Smith met Dr. Jones.", "They left."},
		"The U.S. Army paid 3.14 dollars. Done.":         {"The U.S. Army paid 3.14 dollars.", "Done."},
		"J. F. Kennedy spoke. We heard.":                 {"J. F. Kennedy spoke.", "We heard."},
		"See fig. 3 and No. 7. He said no. Then he left": {"See fig. 3 and No. 7.", "He said no.", "Then he left"},
		"Rivers, e.g. The Rhine, flow. So it is.":        {"Rivers, e.g. The Rhine, flow.", "So it is."},
		"1. First item. 2. Second item.":                 {"1. First item.", "2. Second item."},
		"A hard\nwrapped line. And\r\nanother.":          {"A hard\nwrapped line.", "And\r\nanother."},
		"A title\n\nA paragraph":                         {"A title", "A paragraph"},
		"He said \"Stop.\" She went.":                    {"He said \"Stop.\"", "She went."},
		"これは一つ。これは二つ！":                                   {"これは一つ。", "これは二つ！"},
		"Wait... what. Yes.":                             {"Wait... what.", "Yes."},
		"Дом стоит на ул. Ленина, д. 5. Рядом парк.":     {"Дом стоит на ул. Ленина, д. 5.", "Рядом парк."},
		"Роман А. С. Пушкина вышел в 1833 г. Читали все": {"Роман А. С. Пушкина вышел в 1833 г. Читали все"},
		"Музей им. Глинки и т. д. Вход 3,5 руб. в час.":  {"Музей им. Глинки и т. д.", "Вход 3,5 руб. в час."},
		"Он спросил: «Где ты?» Никто не ответил.":        {"Он спросил: «Где ты?»", "Никто не ответил."},
		"См. рис. 4. Дальше текст.":                      {"См. рис. 4.", "Дальше текст."},
		"天气很好。我们去公园吧！好吗？":                                {"天气很好。", "我们去公园吧！", "好吗？"},
		"It cost 1.5 to 2.75 million. Too much.":         {"It cost 1.5 to 2.75 million.", "Too much."},
		"On Jan. 5 it rained. The end.":                  {"On Jan. 5 it rained.", "The end."},
	} {
		s := &segmenter{ctx: context.Background(), text: text, limit: 200, fragment: 25}
		var got []string
		err := s.sentences(0, len(text), func(start, end int) error {
			if got = append(got, strings.TrimSpace(text[start:end])); got[len(got)-1] == "" {
				got = got[:len(got)-1]
			}
			return nil
		})
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%q:\n got %q %v\nwant %q", text, got, err, want)
		}
	}
}
