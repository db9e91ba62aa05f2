package builtin

import (
	"fmt"
	"testing"
)

func TestCacheIsBounded(t *testing.T) {
	var c wordCache
	for i := range 10 * cacheWords {
		c.put(fmt.Appendf(nil, "word%d", i), []float32{float32(i)})
		if n := c.size(); n > 2*cacheWords {
			t.Fatalf("%d words after %d", n, i+1)
		}
	}
	if c.get([]byte("word0")) != nil {
		t.Error("the first word is still there")
	}
	last := 10*cacheWords - 1
	if v := c.get(fmt.Appendf(nil, "word%d", last)); len(v) != 1 || v[0] != float32(last) {
		t.Errorf("the last word gives %v", v)
	}
}

// TestCacheKeepsWhatIsAskedFor: a word in use survives any number of others.
func TestCacheKeepsWhatIsAskedFor(t *testing.T) {
	var c wordCache
	c.put([]byte("often"), []float32{1})
	for i := range 5 * cacheWords {
		c.put(fmt.Appendf(nil, "word%d", i), []float32{0})
		if i%(cacheWords/2) == 0 && c.get([]byte("often")) == nil {
			t.Fatalf("lost after %d other words", i)
		}
	}
}

func TestUnknownWordsAreCached(t *testing.T) {
	m := New()
	table, err := m.load()
	if err != nil {
		t.Fatal(err)
	}
	m.embed(table, "the bank")
	if n := m.cache.size(); n != 0 {
		t.Fatalf("%d known words in the cache", n)
	}
	m.embed(table, "zxqvish Zxqvish bank")
	if n := m.cache.size(); n != 1 {
		t.Fatalf("%d words in the cache, want 1", n)
	}
}
