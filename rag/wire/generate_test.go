package wire_test

import (
	"fmt"
	"math"
	"reflect"
	"time"

	"pgregory.net/rapid"

	"github.com/waymarkhq/waymark/rag"
)

// source makes values of any noun or row by reflection, so that a field that a codec forgets fails the round trip.
type source struct {
	// number draws from [0, max].
	number func(max int64) int64
	text   func() string
	bytes  func() []byte
	// size is how many elements a slice or map gets; 0 leaves it nil. A pointer is nil where size gives 0.
	size func() int
}

const maxTestChunks = 1 << 24

var (
	statuses = []rag.Status{
		rag.StatusAccepted, rag.StatusChunked, rag.StatusEmbedded, rag.StatusRetrying, rag.StatusIndexed,
		rag.StatusUnchanged, rag.StatusSuperseded, rag.StatusDeleted, rag.StatusDead,
	}
	classes = []rag.Class{rag.ClassMessage, rag.ClassTransient, rag.ClassOutage}
	states  = []rag.LetterState{
		rag.LetterWaiting, rag.LetterScheduled, rag.LetterSent, rag.LetterReplaying, rag.LetterResolved,
		rag.LetterSuperseded, rag.LetterDiscarded,
	}
)

func pick[T any](s *source, list []T) T { return list[s.number(int64(len(list)-1))] }

func fill[T any](s *source) T {
	var v T
	s.fill(reflect.ValueOf(&v).Elem())
	return v
}

func (s *source) fill(v reflect.Value) {
	if s.fillNoun(v) {
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			s.fill(v.Field(i))
		}
	case reflect.Slice:
		for range s.size() {
			e := reflect.New(v.Type().Elem()).Elem()
			s.fill(e)
			v.Set(reflect.Append(v, e))
		}
	case reflect.Map:
		n := s.size()
		if n == 0 {
			return
		}
		v.Set(reflect.MakeMap(v.Type()))
		for range n {
			k, e := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			s.fill(k)
			s.fill(e)
			v.SetMapIndex(k, e)
		}
	case reflect.Pointer:
		if s.size() > 0 {
			v.Set(reflect.New(v.Type().Elem()))
			s.fill(v.Elem())
		}
	case reflect.String:
		v.SetString(s.text())
	case reflect.Bool:
		v.SetBool(s.number(1) == 1)
	case reflect.Int:
		v.SetInt(s.number(maxTestChunks))
	case reflect.Int32:
		v.SetInt(s.number(math.MaxUint32) + math.MinInt32)
	case reflect.Int64:
		v.SetInt(s.number(math.MaxInt64))
	case reflect.Uint8, reflect.Uint64:
		v.SetUint(uint64(s.number(math.MaxInt64)))
	case reflect.Float32:
		v.SetFloat(float64(float32(s.number(math.MaxInt64)) / 7))
	default:
		panic(fmt.Sprintf("the generator does not know %v", v.Type()))
	}
}

// fillNoun fills types whose values are not free.
func (s *source) fillNoun(v reflect.Value) bool {
	switch p := v.Addr().Interface().(type) {
	case *rag.Status:
		*p = pick(s, statuses)
	case *rag.Class:
		*p = pick(s, classes)
	case *rag.LetterState:
		*p = pick(s, states)
	case *rag.ProgressKind:
		*p = rag.ProgressKind(1 + s.number(int64(rag.ProgressRemoved)-1))
	case *rag.CommandKind:
		*p = rag.CommandKind(1 + s.number(int64(rag.CommandDue)-1))
	case *rag.Version:
		*p = rag.Version(s.number(1 << 53))
	case *rag.IndexRange:
		p.From = int(s.number(maxTestChunks))
		p.To = p.From + int(s.number(int64(maxTestChunks-p.From)))
	case *rag.Hash:
		for i := range p {
			p[i] = byte(s.number(255))
		}
	case *[]byte:
		*p = s.bytes()
	case *time.Time:
		if s.size() > 0 {
			*p = time.Unix(s.number(1<<36)-1<<35, s.number(1e9-1)).UTC()
		}
	default:
		return false
	}
	return true
}

// random draws a value of T from t.
func random[T any](t *rapid.T) T {
	return fill[T](&source{
		number: func(max int64) int64 { return rapid.Int64Range(0, max).Draw(t, "number") },
		text:   func() string { return rapid.String().Draw(t, "text") },
		bytes: func() []byte {
			return rapid.OneOf(rapid.Just([]byte(nil)), rapid.Just([]byte{}), rapid.SliceOfN(rapid.Byte(), 1, 20)).Draw(t, "bytes")
		},
		size: func() int { return rapid.IntRange(0, 3).Draw(t, "size") },
	})
}

// sample is the same value of T every time, with something in every field.
func sample[T any]() T {
	n := int64(0)
	next := func() int64 { n++; return n }
	return fill[T](&source{
		number: func(max int64) int64 {
			if max == math.MaxInt64 || max == maxTestChunks {
				return next()
			}
			return next() * 7919 % (max + 1)
		},
		text:  func() string { return fmt.Sprintf("text %d ü", next()) },
		bytes: func() []byte { return []byte{byte(next()), 0, 255} },
		size:  func() int { return 2 },
	})
}
