package builtin

import "sync"

// cacheWords bounds one generation of the cache of unknown words. Two generations of 2,048 vectors of 256 float32 are
// 4 MiB at most, and hold the names and terms of a long document.
const cacheWords = 2048

// wordCache keeps the vectors of unknown words, each of which costs 20 to 40 rows. It drops the older of two
// generations whenever the younger one is full: bounded, without a list to keep in order. The zero value is ready.
type wordCache struct {
	mu         sync.RWMutex
	young, old map[string][]float32
}

// get returns a vector that must not be changed, or nil.
func (c *wordCache) get(word []byte) []float32 {
	c.mu.RLock()
	v, young := c.young[string(word)]
	if !young {
		v = c.old[string(word)]
	}
	c.mu.RUnlock()
	if v != nil && !young {
		c.put(word, v) // a word that is still asked for outlives its generation
	}
	return v
}

// put keeps v, which must not change any more.
func (c *wordCache) put(word []byte, v []float32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.young == nil || len(c.young) >= cacheWords {
		c.young, c.old = make(map[string][]float32), c.young
	}
	c.young[string(word)] = v
}

func (c *wordCache) size() int {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return len(c.young) + len(c.old)
}
