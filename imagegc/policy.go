package imagegc

import (
	"fmt"
	"strings"
	"time"
)

// The thresholds of a [Policy] that says none, in percent, and its MinAge.
const (
	DefaultHighPercent = 85
	DefaultLowPercent  = 80
	DefaultMinAge      = 2 * time.Minute
)

// A Policy says which images may go, and when. The zero value is the kubelet's
// default.
//
// Patterns are of names as the runtime has them, "registry.example/team/app:1.2":
// "*" stands for any text, a slash included, and "?" for one character. One without
// a tag is of all tags.
type Policy struct {
	// HighPercent of the image file system in use is when images are removed, and
	// LowPercent to where. Nil: 85 and 80. 100 for High: space is no reason to
	// remove any. High ≥ Low.
	HighPercent, LowPercent *int32

	// MinAge spares images that were first seen less than this ago. 0: 2 minutes.
	// Negative: none are spared, so that an image may go before the pod that it
	// was pulled for has it.
	MinAge time.Duration

	// MaxAge is how long an image may be unused before it goes without regard to
	// space. 0: for ever.
	MaxAge time.Duration

	// Keep has patterns of images that stay, whatever happens.
	Keep []string

	// Deny has patterns of images that go as soon as nobody uses them, without
	// regard to age and space. Keep goes before it.
	Deny []string

	// KeepTags is how many images of each repository stay: those that were seen
	// last. 0: none does for that.
	KeepTags int

	// TTL has other MaxAges for some images; the first pattern that fits counts.
	TTL []TTL
}

// A TTL is how long images of a pattern may be unused. After 0: for ever.
type TTL struct {
	Pattern string
	After   time.Duration
}

// validated returns the policy with its defaults, or what is wrong with it (ig-1).
func (p Policy) validated() (Policy, error) {
	if p.HighPercent == nil {
		p.HighPercent = new(int32(DefaultHighPercent))
	}
	if p.LowPercent == nil {
		p.LowPercent = new(min(int32(DefaultLowPercent), max(*p.HighPercent, 0)))
	}
	high, low := *p.HighPercent, *p.LowPercent
	switch {
	case high < 0 || high > 100:
		return p, fmt.Errorf("invalid HighThresholdPercent %d, must be in range [0-100]", high)
	case low < 0 || low > 100:
		return p, fmt.Errorf("invalid LowThresholdPercent %d, must be in range [0-100]", low)
	case low > high:
		return p, fmt.Errorf("LowThresholdPercent %d can not be higher than HighThresholdPercent %d", low, high)
	case p.MaxAge < 0:
		return p, fmt.Errorf("MaxAge %v is negative", p.MaxAge)
	case p.KeepTags < 0:
		return p, fmt.Errorf("KeepTags %d is negative", p.KeepTags)
	}
	switch {
	case p.MinAge == 0:
		p.MinAge = DefaultMinAge
	case p.MinAge < 0:
		p.MinAge = 0
	}
	for i, ttl := range p.TTL {
		if ttl.After < 0 {
			return p, fmt.Errorf("TTL[%d].After %v is negative", i, ttl.After)
		}
		if ttl.Pattern == "" {
			return p, fmt.Errorf("TTL[%d].Pattern is empty", i)
		}
	}
	for what, list := range map[string][]string{"Keep": p.Keep, "Deny": p.Deny} {
		for i, pattern := range list {
			if pattern == "" {
				return p, fmt.Errorf("%s[%d] is empty", what, i)
			}
		}
	}
	return p, nil
}

// idle reports whether the policy never removes an image of its own accord (ig-2).
func (p *Policy) idle() bool {
	return *p.HighPercent == 100 && p.MaxAge == 0 && len(p.Deny) == 0 && len(p.TTL) == 0
}

// maxAge returns how long the image may be unused; 0: for ever. why is the pattern
// that says so, "" if it is MaxAge.
func (p *Policy) maxAge(r *Record) (after time.Duration, why string) {
	for _, ttl := range p.TTL {
		if _, ok := fits(r, ttl.Pattern); ok {
			return ttl.After, ttl.Pattern
		}
	}
	return p.MaxAge, ""
}

// listed returns the first of the patterns that a name of the image fits.
func listed(r *Record, patterns []string) (pattern string, ok bool) {
	for _, pattern := range patterns {
		if _, ok := fits(r, pattern); ok {
			return pattern, true
		}
	}
	return "", false
}

// fits returns the name of the image that fits the pattern.
func fits(r *Record, pattern string) (name string, ok bool) {
	for _, names := range [][]string{r.Image.Tags, r.Image.Digests} {
		for _, name := range names {
			if glob(pattern, name) || glob(pattern, repository(name)) {
				return name, true
			}
		}
	}
	return "", glob(pattern, r.Image.ID)
}

// glob reports whether s fits the pattern. It goes over both once, and back to the
// last star where they part.
func glob(pattern, s string) bool {
	star, mark, i, j := -1, 0, 0, 0
	for j < len(s) {
		switch {
		case i < len(pattern) && pattern[i] == '*':
			star, mark = i, j
			i++
		case i < len(pattern) && (pattern[i] == '?' || pattern[i] == s[j]):
			i, j = i+1, j+1
		case star >= 0:
			mark++
			i, j = star+1, mark
		default:
			return false
		}
	}
	return strings.Trim(pattern[i:], "*") == ""
}
