package builtin_test

import (
	"context"
	"strings"
	"testing"

	"github.com/waymarkhq/waymark/rag/embed/builtin"
)

const (
	english = `The central bank lifted its benchmark interest rate by half a percentage point on Thursday, pushing monthly
repayments higher for millions of borrowers on variable deals. Officials said inflation had proved more persistent than
expected, and that further increases could follow before the end of the year. `
	russian = `Центральный банк повысил ключевую ставку на полпроцента, из-за чего кредиты на жильё подорожали для миллионов
заёмщиков. Представители регулятора заявили, что инфляция оказалась устойчивее, чем ожидалось, и до конца года возможны
новые повышения. `
	chunkWords = 200
)

func words(s string, n int) string {
	return strings.Join(strings.Fields(strings.Repeat(s, 10))[:n], " ")
}

func BenchmarkEnglishChunk(b *testing.B) { benchmark(b, words(english, chunkWords)) }
func BenchmarkRussianChunk(b *testing.B) { benchmark(b, words(russian, chunkWords)) }
func BenchmarkQuery(b *testing.B)        { benchmark(b, words(english, 8)) }

func benchmark(b *testing.B, text string) {
	m, texts := loaded(b), []string{text}
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := m.Embed(context.Background(), texts); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "texts/s")
}

func BenchmarkParallel(b *testing.B) {
	m, texts := loaded(b), []string{words(russian, chunkWords)}
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := m.Embed(context.Background(), texts); err != nil {
				b.Error(err)
				return
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "texts/s")
}

func BenchmarkLoad(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		loaded(b)
	}
}

func loaded(b *testing.B) *builtin.Model {
	m := builtin.New()
	if err := m.Canary(context.Background()); err != nil {
		b.Fatal(err)
	}
	return m
}
