package record

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

const (
	leastScrubbed = 6    // bytes of a value; shorter ones occur in unrelated words
	mostScrubbed  = 4096 // values of a generation
)

// A scrubber replaces masked values in texts, such as the command in the error of a runtime. It
// knows the last 4096 values, at least.
type scrubber struct {
	recent, earlier map[string]string // masks by value
	replacer        *strings.Replacer // nil: to be built
}

func (s *scrubber) add(value, mask string) {
	if len(value) < leastScrubbed || s.recent[value] != "" {
		return
	}
	if s.recent == nil || len(s.recent) == mostScrubbed {
		s.recent, s.earlier = map[string]string{}, s.recent
	}
	s.recent[value] = mask
	s.replacer = nil
}

func (s *scrubber) scrub(text string) string {
	if text == "" || len(s.recent) == 0 {
		return text
	}
	if s.replacer == nil {
		all := maps.Clone(s.recent)
		maps.Copy(all, s.earlier)
		values := slices.SortedFunc(maps.Keys(all), func(a, b string) int { // the longest one wins
			return cmp.Or(cmp.Compare(len(b), len(a)), strings.Compare(a, b))
		})
		var pairs []string
		for _, v := range values {
			pairs = append(pairs, v, all[v])
		}
		s.replacer = strings.NewReplacer(pairs...)
	}
	return s.replacer.Replace(text)
}
