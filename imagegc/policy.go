package imagegc

import (
	"fmt"
	"strings"
	"time"
)

const (
	defaultHighPercent = 85
	defaultLowPercent  = 80
	defaultMinAge      = 2 * time.Minute
)

// A Policy determines which images are removed, and when. The zero value is the kubelet's
// default.
//
// Patterns match image names as the runtime reports them, "registry.example/team/app:1.2":
// "*" matches any text including slashes, and "?" one character. A pattern without a tag
// matches all tags.
type Policy struct {
	// HighPercent is the usage of the image file system above which images are removed, and
	// LowPercent the usage at which removal stops; both in percent, HighPercent ≥
	// LowPercent. If nil, they are 85 and 80. With 100 for HighPercent no image is removed
	// to free space.
	HighPercent, LowPercent *int32

	// MinAge protects images that were first detected less than this ago. Zero means 2
	// minutes. A negative value disables it; an image may then be removed before the pod
	// that it was pulled for uses it.
	MinAge time.Duration

	// MaxAge is how long an image may be unused before it is removed regardless of space.
	// Zero means no limit.
	MaxAge time.Duration

	// Keep has patterns of images that are never removed. It precedes Deny.
	Keep []string

	// Deny has patterns of images that are removed as soon as they are unused, regardless
	// of age and space.
	Deny []string

	// KeepTags is the number of images of each repository that are kept, the most recently
	// detected ones. Zero keeps none.
	KeepTags int

	// TTL overrides MaxAge for some images; the first matching pattern applies.
	TTL []TTL

	// Rank replaces the order in which candidates are removed: order is negative if a is
	// removed before b, and reason explains it in the [Decision]. Zero leaves the
	// pair to the kubelet's order: the least recently used first, then those that were
	// detected first. The order must be a strict weak ordering that depends on the arguments
	// only. If nil, the kubelet's order is used.
	Rank func(a, b *Record) (order int, reason string) `json:"-"`
}

// A TTL is how long images that match Pattern may be unused. If After is zero, there is no
// limit.
type TTL struct {
	Pattern string
	After   time.Duration
}

// validated returns the policy with its defaults, or an error if it is invalid.
func (p Policy) validated() (Policy, error) {
	if p.HighPercent == nil {
		p.HighPercent = new(int32(defaultHighPercent))
	}
	if p.LowPercent == nil {
		p.LowPercent = new(min(int32(defaultLowPercent), max(*p.HighPercent, 0)))
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
		p.MinAge = defaultMinAge
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
	for field, list := range map[string][]string{"Keep": p.Keep, "Deny": p.Deny} {
		for i, pattern := range list {
			if pattern == "" {
				return p, fmt.Errorf("%s[%d] is empty", field, i)
			}
		}
	}
	return p, nil
}

// idle reports whether periodic passes never remove an image.
func (p *Policy) idle() bool {
	return *p.HighPercent == 100 && p.MaxAge == 0 && len(p.Deny) == 0 && len(p.TTL) == 0
}

// maxAge returns how long the image may be unused, zero for no limit, and the pattern that
// applies, empty for MaxAge.
func (p *Policy) maxAge(r *Record) (after time.Duration, pattern string) {
	for _, ttl := range p.TTL {
		if matches(r, ttl.Pattern) {
			return ttl.After, ttl.Pattern
		}
	}
	return p.MaxAge, ""
}

// firstMatch returns the first pattern that matches a name of the image.
func firstMatch(r *Record, patterns []string) (pattern string, ok bool) {
	for _, pattern := range patterns {
		if matches(r, pattern) {
			return pattern, true
		}
	}
	return "", false
}

// matches reports whether a name of the image matches the pattern.
func matches(r *Record, pattern string) bool {
	for _, names := range [][]string{r.Image.Tags, r.Image.Digests} {
		for _, name := range names {
			if glob(pattern, name) || glob(pattern, repository(name)) {
				return true
			}
		}
	}
	return glob(pattern, r.Image.ID)
}

// glob reports whether s matches the pattern. After a mismatch it continues at the last star.
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
