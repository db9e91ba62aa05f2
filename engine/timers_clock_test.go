package engine

import (
	"strings"
	"testing"
	"time"
)

// A row names a time by somebody's clock. Once it is known here, how long it takes until then is a matter of this process's
// monotonic clock: whoever sets the other one back, or ahead, neither delays a timer nor hurries it.
func TestTimersCountByTheMonotonicClock(t *testing.T) {
	const minute = time.Minute
	since := time.Now()
	for name, tc := range map[string]struct {
		named       time.Duration // behind since
		least, most time.Duration // most 0: no bound
		want        time.Duration
	}{
		"as named":             {named: 5 * minute, want: 5 * minute},
		"within the bounds":    {named: 5 * minute, least: minute, most: 10 * minute, want: 5 * minute},
		"later than the bound": {named: 1000 * time.Hour, least: minute, most: 10 * minute, want: 10 * minute},
		"sooner":               {named: -time.Hour, least: minute, most: 10 * minute, want: minute},
		"long ago":             {named: -time.Hour, want: 0},
	} {
		t.Run(name, func(t *testing.T) {
			def := &timer{minDelay: func(any) time.Duration { return tc.least }}
			if tc.most > 0 {
				def.maxDelay = func(any) time.Duration { return tc.most }
			}
			at := (&timers{def: def}).when(nil, since.Add(tc.named).Round(0), since) // as a row has it: by the wall clock alone
			if got := at.Sub(since); got != tc.want {
				t.Errorf("it fires after %s, want %s", got, tc.want)
			}
			if !strings.Contains(at.String(), " m=") {
				t.Errorf("it fires at %s, which has no monotonic reading: setting the clock back puts it off", at)
			}
		})
	}
}
