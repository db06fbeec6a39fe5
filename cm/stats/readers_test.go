package stats

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestReadsAreExpected(t *testing.T) {
	begun := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for name, tc := range map[string]struct {
		reads []float64 // seconds
		now   float64
		want  bool // that a read is expected within ten seconds
	}{
		"none":                          {nil, 5, false},
		"one":                           {[]float64{0}, 5, false},
		"once a minute, early":          {[]float64{0, 60}, 100, false},
		"once a minute, soon":           {[]float64{0, 60}, 110, true},
		"once a minute, late":           {[]float64{0, 60}, 150, true},
		"once a minute, then no more":   {[]float64{0, 60}, 181, false},
		"every 15 seconds":              {[]float64{0, 15, 30}, 35, true},
		"after a long pause":            {[]float64{0, 15, 300}, 310, false},
		"two endpoints at a time":       {[]float64{0, 0.1, 60, 60.1}, 100, false},
		"two endpoints, one soon after": {[]float64{0, 5, 60, 65}, 100, false},
		"the same, soon":                {[]float64{0, 5, 60, 65}, 110, true},
	} {
		t.Run(name, func(t *testing.T) {
			at := func(seconds float64) time.Time { return begun.Add(time.Duration(seconds * float64(time.Second))) }
			var r readers
			for _, s := range tc.reads {
				r = r.read(at(s))
			}
			assert.Equal(t, tc.want, r.expected(at(tc.now), at(tc.now+10)))
		})
	}
}
