package main

import (
	"strings"
	"testing"
	"time"
)

// Events as go test -json writes them.
const (
	failing = `{"Action":"start","Package":"p"}
{"Action":"run","Package":"p","Test":"TestA"}
{"Action":"output","Package":"p","Test":"TestA","Output":"=== RUN   TestA\n"}
{"Action":"run","Package":"p","Test":"TestA/one"}
{"Action":"output","Package":"p","Test":"TestA/one","Output":"    a_test.go:6: noted: all is well\n"}
{"Action":"output","Package":"p","Test":"TestA/one","Output":"    a_test.go:7: sent\n"}
{"Action":"output","Package":"p","Test":"TestA/one","Output":"          this\n"}
{"Action":"output","Package":"p","Test":"TestA/one","Output":"        want\n"}
{"Action":"output","Package":"p","Test":"TestA/one","Output":"          that\n"}
{"Action":"output","Package":"p","Test":"TestA/one","Output":"    a_test.go:8: and more\n"}
{"Action":"output","Package":"p","Test":"TestA/one","Output":"--- FAIL: TestA/one (0.00s)\n"}
{"Action":"fail","Package":"p","Test":"TestA/one","Elapsed":0}
{"Action":"fail","Package":"p","Test":"TestA","Elapsed":0}
{"Action":"pass","Package":"p","Test":"TestB","Elapsed":0}
{"Action":"output","Package":"p","Output":"FAIL\n"}
{"Action":"fail","Package":"p","Elapsed":1.5}
`
	passing = `{"Action":"run","Package":"p","Test":"TestA"}
{"Action":"output","Package":"p","Test":"TestA","Output":"    a_test.go:7: panic: only logged\n"}
{"Action":"pass","Package":"p","Test":"TestA","Elapsed":0}
{"Action":"output","Package":"p","Output":"ok  \tp\t0.1s\n"}
{"Action":"pass","Package":"p","Elapsed":0.1}
`
	skipping = `{"Action":"run","Package":"p","Test":"TestA"}
{"Action":"skip","Package":"p","Test":"TestA","Elapsed":0}
{"Action":"pass","Package":"p","Elapsed":0.1}
`
	nothing = `{"Action":"output","Package":"p","Output":"testing: warning: no tests to run\n"}
{"Action":"pass","Package":"p","Elapsed":0.1}
`
	building = `{"ImportPath":"p [p.test]","Action":"build-output","Output":"# p [p.test]\n"}
{"ImportPath":"p [p.test]","Action":"build-output","Output":"./p.go:3:1: undefined: x\n"}
{"ImportPath":"p [p.test]","Action":"build-fail"}
{"Action":"output","Package":"p","Output":"FAIL\tp [build failed]\n"}
{"Action":"fail","Package":"p","Elapsed":0,"FailedBuild":"p [p.test]"}
`
	crashing = `{"Action":"run","Package":"p","Test":"TestA"}
{"Action":"output","Package":"p","Test":"TestA","Output":"panic: runtime error: index out of range\n"}
{"Action":"output","Package":"p","Test":"TestA","Output":"\n"}
{"Action":"fail","Package":"p","Test":"TestA","Elapsed":0}
{"Action":"fail","Package":"p","Elapsed":0.1}
`
	hanging = `{"Action":"run","Package":"p","Test":"TestA"}
{"Action":"output","Package":"p","Test":"TestA","Output":"panic: test timed out after 1m30s\n"}
{"Action":"fail","Package":"p","Test":"TestA","Elapsed":90}
{"Action":"fail","Package":"p","Elapsed":90}
`
	leaking = `{"Action":"run","Package":"p","Test":"TestA"}
{"Action":"pass","Package":"p","Test":"TestA","Elapsed":0}
{"Action":"output","Package":"p","Output":"goleak: Errors on successful test run\n"}
{"Action":"fail","Package":"p","Elapsed":0.1}
`
	noBinary = `{"Action":"output","Package":"p","Output":"building the binary: exit status 1\n"}
{"Action":"output","Package":"p","Output":"FAIL\tp\t3s\n"}
{"Action":"fail","Package":"p","Elapsed":3}
`
	cut = `{"Action":"run","Package":"p","Test":"TestA"}
{"Action":"pass","Package":"p","Test":"TestA","Elapsed":0}
not JSON
`
)

func TestJudge(t *testing.T) {
	for name, tc := range map[string]struct {
		events  string
		outcome outcome
		tests   string
		says    string
	}{
		"a test fails":            {failing, failed, "TestA/one", "sent this want that"},
		"all tests pass":          {passing, passed, "", ""},
		"every test is skipped":   {skipping, broken, "", "no test ran: "},
		"no test has the name":    {nothing, broken, "", "no test ran: testing: warning: no tests to run"},
		"it does not compile":     {building, broken, "", "it does not compile: ./p.go:3:1: undefined: x"},
		"a test crashes":          {crashing, broken, "", "the process of the tests crashed: panic: runtime error: index out of range"},
		"a test hangs":            {hanging, broken, "", "the process of the tests crashed: panic: test timed out after 1m30s"},
		"TestMain finds a leak":   {leaking, broken, "", "it fails outside of its tests: goleak: Errors on successful test run"},
		"the binary is not built": {noBinary, broken, "", "no test ran: building the binary: exit status 1"},
		"the end is missing":      {cut, broken, "", "its end was not told: "},
		"nothing is told":         {"", broken, "", "no test ran: "},
	} {
		t.Run(name, func(t *testing.T) {
			r := judge(strings.NewReader(tc.events))
			if r.outcome != tc.outcome || strings.Join(r.tests, " ") != tc.tests || r.says != tc.says {
				t.Errorf("%+v, want %+v", r, tc)
			}
		})
	}
	if r := judge(strings.NewReader(failing)); r.took != 1500*time.Millisecond {
		t.Errorf("took %v", r.took)
	}
}

func TestPattern(t *testing.T) {
	for want, c := range map[string]command{
		"^(TestA)$":               at("p", "TestA"),
		"^(TestA|TestB)$":         at("p", "TestA", "TestB"),
		"^(TestA)$/^(x\\.y)$":     at("p", "TestA/x.y"),
		"^(TestA|TestA)$/^(x|y)$": at("p", "TestA/x", "TestA/y"),
	} {
		if got := c.pattern(); got != want {
			t.Errorf("%v: %s, want %s", c, got, want)
		}
	}
}

func TestOneLine(t *testing.T) {
	long := strings.Repeat("ü", 200)
	for text, want := range map[string]string{"": "", "\n  \n": "", "\n a b \n c": "a b", long: strings.Repeat("ü", 160) + "…"} {
		if got := oneLine(text); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
