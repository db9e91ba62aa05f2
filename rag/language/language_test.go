package language

import (
	"encoding/base64"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestSentencesOfManyLanguages(t *testing.T) {
	for want, text := range map[string]string{
		"en": "The pipeline is only as good as the text that it gets out of a document.",
		"ru": "Чаша озера лежит в рифте, где земная кора медленно расходится, и потому озеро не мелеет.",
		"bg": "Реката извира от планината и тече на север, докато стигне до морето, където свършва нейният път.",
		"ca": "El riu neix a les muntanyes i corre cap al nord fins que arriba al mar, on acaba el seu camí, i no és tan llarg com els altres rius del país.",
		"sr": "Река извире у планинама и тече на север све док не стигне до мора, где се завршава њен пут.",
		"sv": "Floden rinner upp i bergen och flyter norrut tills den når havet där den slutar.",
		"uk": "Сьогодні гарна погода, і діти пішли гуляти до парку над річкою.",
		"de": "Der Fluss entspringt in den Alpen und fließt nach Norden, bis er das Meer erreicht.",
		"fr": "Le fleuve prend sa source dans les Alpes et coule vers le nord jusqu'à la mer.",
		"es": "El río nace en las montañas y corre hacia el norte hasta llegar al mar.",
		"it": "Il fiume nasce nelle Alpi e scorre verso nord fino a quando raggiunge il mare.",
		"pt": "O rio nasce nas montanhas e corre para o norte até chegar ao mar, onde não há mais terra.",
		"nl": "De rivier ontspringt in de Alpen en stroomt naar het noorden tot zij de zee bereikt.",
		"pl": "Rzeka wypływa z gór i płynie na północ, aż dotrze do morza, gdzie kończy się jej bieg.",
		"tr": "Nehir dağlardan doğar ve denize ulaşana kadar kuzeye doğru akar, çünkü yol oradadır.",
		"fi": "Joki saa alkunsa vuorilta ja virtaa pohjoiseen, kunnes se saavuttaa meren rannan.",
		"el": "Ο ποταμός πηγάζει από τα βουνά και ρέει προς τον βορρά.",
		"ar": "ينبع النهر من الجبال ويجري نحو الشمال حتى يصل إلى البحر الكبير.",
		"he": "הנהר נובע מההרים וזורם צפונה עד שהוא מגיע אל הים הגדול",
		"hi": "नदी पहाड़ों से निकलती है और उत्तर की ओर बहती हुई समुद्र तक पहुँचती है",
		"zh": "河流发源于山中，向北流入大海。",
		"ja": "川は山から流れ出て、北へ向かい、海に注ぎます。",
		"ko": "강은 산에서 시작하여 북쪽으로 흘러 바다에 이른다.",
		"th": "แม่น้ำไหลจากภูเขาไปทางเหนือจนถึงทะเล",
	} {
		if got := Detect(text); got != want {
			t.Errorf("%q is taken for %q, not %q", text, got, want)
		}
	}
}

// A single sentence is enough where its letters and endings say it.
func TestShortTextsInCyrillic(t *testing.T) {
	for text, want := range map[string]string{
		"Рейн берёт начало в Альпах.": "ru", "Река течёт на север к морю.": "ru", "Договор аренды подписан вчера.": "ru",
		"Вода поднялась на метр.": "ru", "Собрание переносится на пятницу, начало в десять утра.": "ru", "Оплата до конца месяца": "ru",
		"Как настроить резервное копирование базы данных?": "ru", "Это новый договор с банком.": "ru",
		"Скачайте приложение Google Chrome и нажмите Install в меню Settings.": "ru",
		"Реката извира от планината.":                                          "bg", "Реката тече на север към морето.": "bg", "Това е новият договор с банката.": "bg",
		"Вода тече на північ.": "uk", "Договір оренди підписано вчора.": "uk", "Рака цячэ на поўнач да мора.": "be",
		"Привет, мир": "", "Заявка": "", "1 234,50 руб.": "",
	} {
		if got := Detect(text); got != want {
			t.Errorf("%q is taken for %q, not %q", text, got, want)
		}
	}
}

// A text in two languages is in the one that most of its words are in; with as many of each, in the one whose letters the other does
// not borrow.
func TestMixedTexts(t *testing.T) {
	const en = "The Rhine rises in the Alps and flows north through six countries, as everybody knows. "
	const ru = "Рейн берёт начало в Альпах и течёт на север через шесть стран, как всем известно. "
	for name, c := range map[string]struct{ text, want string }{
		"half and half":           {en + ru, "ru"},
		"the other way round":     {ru + en, "ru"},
		"long, one after another": {strings.Repeat(en, 20) + strings.Repeat(ru, 40), "ru"},
		"mostly English":          {strings.Repeat(en, 40) + strings.Repeat(ru, 20), "en"},
		"an English quotation":    {strings.Repeat(ru, 5) + en, "ru"},
		"a Russian quotation":     {strings.Repeat(en, 5) + ru, "en"},
		"terms":                   {"Для установки Kubernetes нужны Docker, Helm и kubectl; настройте Ingress и cert-manager по инструкции.", "ru"},
	} {
		if got := Detect(c.text); got != c.want {
			t.Errorf("%s is taken for %q, not %q", name, got, c.want)
		}
	}
}

func TestWhatHasNoLanguage(t *testing.T) {
	random := make([]byte, 4096)
	r := rand.New(rand.NewPCG(1, 2))
	for i := range random {
		random[i] = byte(r.Uint32())
	}
	for name, text := range map[string]string{
		"nothing": "", "space": " \n\t", "numbers": strings.Repeat("12.5, 7; ", 100), "one word": "Hello", "signs": "=== --- !!!",
		"base64": base64.StdEncoding.EncodeToString(random), "hash": strings.Repeat("9f86d081884c7d659a2feaa0c55ad015 ", 40),
		"addresses": strings.Repeat("https://example.org/a/b?c=d user@example.org ", 40),
	} {
		if got := Detect(text); got != "" {
			t.Errorf("%s: taken for %q", name, got)
		}
	}
}

func TestLongTexts(t *testing.T) {
	for file, want := range map[string]string{
		"../../examples/articles/1791-george-washington.txt": "en",
		"../../examples/articles/2017-donald-j-trump.txt":    "en",
		"../../examples/articles/2001-george-w-bush.md":      "en",
		"../../internal/eval/testdata/ru/transsib.md":        "ru",
		"../../internal/eval/testdata/ru/arenda.md":          "ru",
	} {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if got := Detect(string(b)); got != want {
			t.Errorf("%s is taken for %q", file, got)
		}
		mixed := strings.Repeat(string(b), 3) + strings.Repeat(" 12,5;", 500) // figures at the end do not hide it
		if got := Detect(mixed); got != want {
			t.Errorf("%s with figures is taken for %q", file, got)
		}
	}
}

func TestAnyTextGivesACodeOrNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Repeat(rapid.String().Draw(t, "text"), rapid.IntRange(1, 200).Draw(t, "times"))
		got := Detect(text)
		if n := len(got); n != 0 && n != 2 && n != 3 {
			t.Fatalf("%q", got)
		}
		if again := Detect(text); again != got {
			t.Fatalf("%q, the second time %q", got, again)
		}
	})
}

func FuzzDetect(f *testing.F) {
	f.Add("The river rises in the Alps.")
	f.Add("天\xe4\xb8 \xff")
	f.Fuzz(func(t *testing.T, text string) {
		if got := Detect(text); !utf8.ValidString(got) || len(got) > 3 {
			t.Errorf("%q", got)
		}
	})
}

// A list in which a word is there twice would count it once only, and one with a capital never.
func TestCommonWords(t *testing.T) {
	for word, languages := range common {
		if strings.ToLower(word) != word || len(languages) == 0 {
			t.Errorf("%q of %v", word, languages)
		}
	}
	for text, want := range map[string]string{
		"the sea of the north is in the map":                           "", // too short
		"the river and the sea of the north is in the map of the year": "en",
		strings.Repeat("a de que se para ", 20):                        "", // of two languages
	} {
		if got := byCommonWords([]string{text}); got != want {
			t.Errorf("%q is taken for %q", text, got)
		}
	}
}

func BenchmarkDetect(b *testing.B) {
	text, err := os.ReadFile("../../examples/articles/1791-george-washington.txt")
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		Detect(string(text))
	}
}
