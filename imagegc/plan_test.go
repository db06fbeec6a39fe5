package imagegc_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/imagegc"
	"github.com/kubeparts/kubeparts/internal/seedrun"
	"github.com/kubeparts/kubeparts/runtime"
)

func TestAPolicyIsChecked(t *testing.T) { // ig-1
	percent := func(high, low int32) imagegc.Policy {
		return imagegc.Policy{HighPercent: &high, LowPercent: &low}
	}
	for want, p := range map[string]imagegc.Policy{
		"LowThresholdPercent 90 can not be higher than HighThresholdPercent 80": percent(80, 90),
		"invalid HighThresholdPercent 110, must be in range [0-100]":            percent(110, 80),
		"invalid HighThresholdPercent -1, must be in range [0-100]":             percent(-1, 0),
		"invalid LowThresholdPercent -1, must be in range [0-100]":              percent(50, -1),
		"MaxAge -1s is negative":        {MaxAge: -time.Second},
		"KeepTags -1 is negative":       {KeepTags: -1},
		"TTL[0].Pattern is empty":       {TTL: []imagegc.TTL{{After: 1}}},
		"TTL[1].After -1ns is negative": {TTL: []imagegc.TTL{{Pattern: "a"}, {Pattern: "b", After: -1}}},
		"Keep[0] is empty":              {Keep: []string{""}},
		"Deny[1] is empty":              {Deny: []string{"a", ""}},
	} {
		w := newWorld(100)
		cfg := w.config()
		cfg.Policy = p
		_, err := imagegc.New(cfg)
		assert.EqualError(t, err, "imagegc: Config.Policy: "+want)
		_, err = imagegc.Inputs{Policy: p}.Plan()
		assert.EqualError(t, err, "imagegc: "+want)
	}
	for _, p := range []imagegc.Policy{{}, percent(100, 100), percent(0, 0), percent(80, 80), {HighPercent: new(int32(50))}} {
		_, err := imagegc.Inputs{Policy: p}.Plan()
		assert.NoError(t, err)
	}
}

func TestBytesToFree(t *testing.T) { // ig-11, ig-12
	const gi = 1 << 30
	for name, tc := range map[string]struct {
		space     imagegc.Space
		high, low int32
		percent   int
		free      uint64
	}{
		"below the mark":        {imagegc.Space{Capacity: 100, Available: 16}, 85, 80, 84, 0},
		"at the mark":           {imagegc.Space{Capacity: 100, Available: 15}, 85, 80, 85, 5},
		"full":                  {imagegc.Space{Capacity: 100}, 85, 80, 100, 20},
		"percents are cut":      {imagegc.Space{Capacity: 1000, Available: 159}, 85, 80, 85, 41},
		"more than there is":    {imagegc.Space{Capacity: 100, Available: 300}, 85, 80, 0, 0},
		"unknown":               {imagegc.Space{}, 85, 80, 0, 0},
		"one mark":              {imagegc.Space{Capacity: 1000, Available: 155}, 85, 85, 85, 0},
		"everything":            {imagegc.Space{Capacity: 100, Available: 100}, 0, 0, 0, 0},
		"a large disk":          {imagegc.Space{Capacity: 100 * gi, Available: 10 * gi}, 85, 80, 90, 10 * gi},
		"the largest":           {imagegc.Space{Capacity: math.MaxUint64, Available: math.MaxUint64 / 10}, 85, 80, 91, math.MaxUint64/5 - math.MaxUint64/10},
		"only when it is full":  {imagegc.Space{Capacity: 100, Available: 1}, 100, 80, 99, 0},
		"low 0 is all there is": {imagegc.Space{Capacity: 100, Available: 10}, 85, 0, 90, 90},
	} {
		t.Run(name, func(t *testing.T) {
			plan, err := imagegc.Inputs{
				Space: tc.space, Policy: imagegc.Policy{HighPercent: &tc.high, LowPercent: &tc.low}, Now: t0,
			}.Plan()
			require.NoError(t, err)
			assert.Equal(t, tc.percent, plan.UsagePercent)
			assert.Equal(t, tc.free, plan.Free)
		})
	}
}

func TestDecisionsPerImage(t *testing.T) {
	with := func(r imagegc.Record, change func(*imagegc.Record)) imagegc.Record { change(&r); return r }
	old := record("a:1", 100, 50, 1)
	used := with(old, func(r *imagegc.Record) { r.Users = []string{"container default/web[c]"} })
	crowd := with(old, func(r *imagegc.Record) { r.Users = []string{"1", "2", "3", "4", "5"} })
	pinned := with(old, func(r *imagegc.Record) { r.Image.Pinned = true })
	for name, tc := range map[string]struct {
		r      imagegc.Record
		policy imagegc.Policy
		since  time.Duration // time for which images have been tracked
		want   string
	}{
		"ig-8 a candidate":                  {old, imagegc.Policy{}, 1e15, "a:1: keep (candidate, unused for 50h0m0s)"},
		"ig-8 never used":                   {record("a:1", 100, -1, 1), imagegc.Policy{}, 1e15, "a:1: keep (candidate, never used)"},
		"ig-8 in use":                       {used, imagegc.Policy{}, 1e15, "a:1: keep (in use, by container default/web[c])"},
		"in use by many":                    {crowd, imagegc.Policy{}, 1e15, "a:1: keep (in use, by 1, 2, 3 and 2 more)"},
		"ig-19 pinned":                      {pinned, imagegc.Policy{MaxAge: 1, Deny: []string{"*"}}, 1e15, "a:1: keep (pinned, by the runtime)"},
		"ig-13 too young":                   {record("a:1", 0.02, -1, 1), imagegc.Policy{}, 1e15, "a:1: keep (too young, detected 1m12s ago, less than 2m0s)"},
		"ig-13 just used":                   {record("a:1", 10, 0, 1), imagegc.Policy{}, 1e15, "a:1: keep (just used)"},
		"no age spares it":                  {record("a:1", 0.001, -1, 1), imagegc.Policy{MinAge: -1}, 1e15, "a:1: keep (candidate, never used)"},
		"ig-10 too old":                     {old, imagegc.Policy{MaxAge: 49 * time.Hour}, 50 * time.Hour, "a:1: remove (aged, unused for 50h0m0s, more than 49h0m0s)"},
		"ig-10 not older":                   {old, imagegc.Policy{MaxAge: 50 * time.Hour}, 1e15, "a:1: keep (candidate, unused for 50h0m0s)"},
		"ig-10 not tracked for long enough": {old, imagegc.Policy{MaxAge: 49 * time.Hour}, 48 * time.Hour, "a:1: keep (candidate, unused for 50h0m0s)"},
		"never used, but new":               {record("a:1", 48, -1, 1), imagegc.Policy{MaxAge: 49 * time.Hour}, 1e15, "a:1: keep (candidate, never used)"},
		"never used, and old":               {record("a:1", 50, -1, 1), imagegc.Policy{MaxAge: 49 * time.Hour}, 1e15, "a:1: remove (aged, unused for 50h0m0s, more than 49h0m0s)"},
		"in use and old":                    {used, imagegc.Policy{MaxAge: 1}, 1e15, "a:1: keep (in use, by container default/web[c])"},
		"kept":                              {old, imagegc.Policy{Keep: []string{"x", "*/a:*"}, Deny: []string{"*"}, MaxAge: 1}, 1e15, `a:1: keep (kept, as "*/a:*")`},
		"denied":                            {record("a:1", 0.001, -1, 1), imagegc.Policy{Deny: []string{"docker.io/library/a"}, KeepTags: 1}, 1e15, `a:1: remove (denied, as "a")`},
		"denied and in use":                 {used, imagegc.Policy{Deny: []string{"*"}}, 1e15, "a:1: keep (in use, by container default/web[c])"},
		"the last of its repository":        {old, imagegc.Policy{KeepTags: 1, MaxAge: 1}, 1e15, "a:1: keep (kept, among the last 1 of a)"},
		"its own TTL":                       {old, imagegc.Policy{TTL: []imagegc.TTL{{"*/a:?", time.Hour}}}, 1e15, `a:1: remove (aged, unused for 50h0m0s, more than 1h0m0s of "*/a:?")`},
		"the first one counts":              {old, imagegc.Policy{MaxAge: 1, TTL: []imagegc.TTL{{"*/a:1", 0}, {"*", 1}}}, 1e15, "a:1: keep (candidate, unused for 50h0m0s)"},
		"a time that has yet to come":       {record("a:1", -5, -7, 1), imagegc.Policy{MaxAge: 1}, 1e15, "a:1: keep (too young, detected -5h0m0s ago, less than 2m0s)"},
	} {
		t.Run(name, func(t *testing.T) {
			plan, err := imagegc.Inputs{Records: []imagegc.Record{tc.r}, Policy: tc.policy, Since: t0.Add(-tc.since), Now: t0}.Plan()
			require.NoError(t, err)
			assert.Equal(t, tc.want, strings.ReplaceAll(plan.Decisions[0].String(), "docker.io/library/", ""))
		})
	}
}

// anything returns random inputs, not necessarily consistent ones.
func anything(r *rand.Rand) imagegc.Inputs {
	in := imagegc.Inputs{Now: t0, Since: t0.Add(-time.Duration(r.IntN(100)) * time.Hour), All: r.IntN(8) == 0}
	for i := range r.IntN(12) {
		rec := record(fmt.Sprintf("repo%d:%d", r.IntN(3), i), float64(r.IntN(40))/4, float64(r.IntN(20)-3)/2, uint64(r.IntN(30)))
		rec.Image.Pinned = r.IntN(6) == 0
		if r.IntN(4) == 0 {
			rec.Users = []string{"some-container"}
		}
		in.Records = append(in.Records, rec)
	}
	low := int32(r.IntN(101))
	in.Policy = imagegc.Policy{LowPercent: &low, HighPercent: new(low + int32(r.IntN(int(101-low)))), MinAge: time.Duration(r.IntN(4)) * time.Hour}
	if r.IntN(3) == 0 {
		in.Policy.MaxAge = time.Duration(r.IntN(8)) * time.Hour
	}
	if r.IntN(4) == 0 {
		in.Policy.Keep = []string{"*repo1:*"}
	}
	if r.IntN(4) == 0 {
		in.Policy.Deny = []string{"*repo2:*"}
	}
	in.Policy.KeepTags = r.IntN(5) / 2
	in.Space = imagegc.Space{Capacity: uint64(r.IntN(200)), Available: uint64(r.IntN(220))}
	return in
}

func goers(p imagegc.Plan) []string {
	names := []string{}
	for _, d := range p.Decisions {
		if d.Remove {
			names = append(names, d.Record.Image.ID)
		}
	}
	return names
}

// The invariants of any plan, for any inputs.
func TestAPlanKeepsItsInvariants(t *testing.T) {
	first := seedrun.Seed(t)
	for i := range uint64(5000) {
		seed := first + i
		r := rand.New(rand.NewPCG(seed, 0))
		in := anything(r)
		plan, err := in.Plan()
		require.NoError(t, err)
		again, _ := in.Plan()
		require.Equal(t, plan, again, "seed %d: the same input, the same plan", seed)
		require.Len(t, plan.Decisions, len(in.Records))

		space := false
		for _, d := range plan.Decisions {
			goes := d.Remove
			require.False(t, goes && (len(d.Record.Users) > 0 || d.Record.Image.Pinned), "seed %d: %s", seed, d)
			require.False(t, goes && d.Class == "kept", "seed %d", seed)
			require.False(t, goes && d.Class == "candidate" && t0.Sub(d.Record.FirstDetected) < in.Policy.MinAge, "seed %d: %s", seed, d)
			space = space || goes && d.Class == "candidate"
		}
		full := in.Space.Capacity > 0 && plan.UsagePercent >= int(*in.Policy.HighPercent)
		require.False(t, space && !full && !in.All, "seed %d: space is no reason", seed)
		if in.Space.Capacity > 0 && in.Space.Available >= in.Space.Capacity && *in.Policy.LowPercent > 0 {
			require.False(t, space && !in.All, "seed %d: an empty disk", seed)
		}

		// With more space, no more images are removed, and those removed are the first
		// of the other plan.
		more := in
		more.Space.Available += uint64(r.IntN(50))
		less, _ := more.Plan()
		require.Equal(t, goers(less), goers(plan)[:len(goers(less))], "seed %d", seed)

		// Without one image, the others are decided upon in the same order, but for the
		// place of the one among the last of its repository.
		if len(in.Records) > 0 && in.Policy.KeepTags == 0 {
			without := in
			i := r.IntN(len(in.Records))
			gone := in.Records[i].Image.ID
			without.Records = slices.Delete(slices.Clone(in.Records), i, i+1)
			other, _ := without.Plan()
			var a, b []string
			for _, d := range plan.Decisions {
				if d.Record.Image.ID != gone {
					a = append(a, d.Record.Image.ID+" "+string(d.Class))
				}
			}
			for _, d := range other.Decisions {
				b = append(b, d.Record.Image.ID+" "+string(d.Class))
			}
			require.Equal(t, a, b, "seed %d", seed)
		}
	}
}

func TestCustomRank(t *testing.T) {
	in := imagegc.Inputs{
		Records: []imagegc.Record{record("small:1", 100, 50, 1), record("big:1", 100, 10, 90)},
		Space:   imagegc.Space{Capacity: 100, Available: 5}, Now: t0,
		Policy: imagegc.Policy{Rank: func(a, b *imagegc.Record) (int, string) { return int(b.Image.Size) - int(a.Image.Size), "size" }},
	}
	plan, err := in.Plan()
	require.NoError(t, err)
	assert.Equal(t, []string{"sha256:big:1"}, goers(plan))
	assert.Equal(t, "size", plan.Decisions[0].RankReason)
	assert.Empty(t, plan.Decisions[1].RankReason)
	in.Policy.Rank = nil
	plan, err = in.Plan()
	require.NoError(t, err)
	assert.Equal(t, "last used", plan.Decisions[0].RankReason)
}

func TestUsersOfImages(t *testing.T) { // ig-4, ig-5, ig-7, nq-9
	const digest = "sha256:1111111111111111111111111111111111111111111111111111111111111111"
	images := []runtime.Image{
		{ID: "sha256:aaa", Tags: []string{"docker.io/library/busybox:latest"}, Digests: []string{"docker.io/library/busybox@" + digest}},
		{ID: "sha256:bbb", Tags: []string{"registry.example:5000/team/app:1"}},
		{ID: "sha256:ccc"},
		{ID: "sha256:aaa", RuntimeHandler: "gvisor"},
	}
	for name, tc := range map[string]struct {
		use  runtime.ImageUse
		want string
	}{
		"by ID, for every handler":            {runtime.ImageUse{ID: "sha256:aaa"}, "aaa aaa,gvisor"},
		"by an ID without its algorithm":      {runtime.ImageUse{Ref: "bbb"}, "bbb"},
		"by a digest":                         {runtime.ImageUse{Ref: "docker.io/library/busybox@" + digest}, "aaa"},
		"by a digest and a tag":               {runtime.ImageUse{Name: "busybox:1.36@" + digest}, "aaa"},
		"by its short name":                   {runtime.ImageUse{Name: "busybox"}, "aaa"},
		"by its full name":                    {runtime.ImageUse{Name: "registry.example:5000/team/app:1"}, "bbb"},
		"a tag that has moved away from it":   {runtime.ImageUse{ID: "sha256:ccc", Name: "busybox"}, "ccc"},
		"an ID that is gone: the name counts": {runtime.ImageUse{ID: "sha256:gone", Name: "busybox"}, "aaa"},
		"another tag":                         {runtime.ImageUse{Name: "busybox:2"}, ""},
		"an invalid name":                     {runtime.ImageUse{Name: "NOT a name"}, ""},
		"nothing":                             {runtime.ImageUse{}, ""},
		"ID and reference of two":             {runtime.ImageUse{ID: "sha256:ccc", Ref: "sha256:bbb"}, "bbb ccc"},
	} {
		t.Run(name, func(t *testing.T) {
			var used []string
			for _, r := range imagegc.Detect(nil, images, []runtime.ImageUse{tc.use}, t0) {
				assert.Equal(t, len(r.Users) > 0, r.LastUsed.Equal(t0))
				if len(r.Users) > 0 {
					used = append(used, strings.TrimSuffix(strings.TrimPrefix(r.Image.ID, "sha256:")+","+r.Image.RuntimeHandler, ","))
				}
			}
			slices.Sort(used)
			assert.Equal(t, tc.want, strings.Join(used, " "))
		})
	}
}

func TestACorrectedClock(t *testing.T) { // bad input: clock jumps
	images := []runtime.Image{{ID: "a"}, {ID: "a"}}
	ahead := imagegc.Detect(nil, images, []runtime.ImageUse{{ID: "a"}}, t0.Add(1000*time.Hour))
	require.Len(t, ahead, 1, "listed twice")
	now := imagegc.Detect(ahead, images, nil, t0)
	assert.Equal(t, t0, now[0].FirstDetected)
	assert.Equal(t, t0, now[0].LastUsed)
	assert.Empty(t, imagegc.Detect(now, nil, nil, t0), "ig-5: forgotten")
}

func FuzzGlob(f *testing.F) {
	f.Add("*/a:*", "docker.io/library/a:1")
	f.Add("**?*", "")
	f.Add(strings.Repeat("*a", 50), strings.Repeat("a", 200))
	f.Fuzz(func(t *testing.T, pattern, name string) {
		r := record("x:1", 1, -1, 1)
		r.Image.Tags, r.Image.Digests = []string{name}, nil
		plan, err := imagegc.Inputs{Records: []imagegc.Record{r}, Policy: imagegc.Policy{Keep: []string{pattern}}, Now: t0}.Plan()
		if pattern == "" {
			require.Error(t, err)
			return
		}
		require.NoError(t, err)
		kept := plan.Decisions[0].Class == "kept"
		if strings.Trim(pattern, "*") == "" {
			require.True(t, kept)
		}
		if pattern == name {
			require.True(t, kept)
		}
	})
}
