package imagegc_test

import (
	"cmp"
	"context"
	"fmt"
	"log"
	"time"

	"github.com/kubeparts/kubeparts/imagegc"
	"github.com/kubeparts/kubeparts/runtime"
)

// A pass over a small disk. In an agent, Store is a runtime (cri.Runtime), Space is SpaceOf
// of it, and Run makes the passes.
func ExampleManager_Collect() {
	disk := newWorld(100)
	disk.pull("web:1", map[string]uint64{"base": 30, "web1": 10})
	disk.pull("web:2", map[string]uint64{"base": 30, "web2": 10})
	disk.pull("job:1", map[string]uint64{"job": 40})
	disk.use("web", "web:2")

	m, err := imagegc.New(imagegc.Config{
		Store: disk, Space: disk.space, Policy: imagegc.Policy{MinAge: -1, Keep: []string{"*/job:*"}},
		Hooks: imagegc.Hooks{Removed: func(i imagegc.RemovedInfo) {
			fmt.Println("removed", i.Record.Image.Tags[0], "for", i.Reason, "which freed", i.Freed, "of", i.Record.Image.Size)
		}},
	})
	if err != nil {
		log.Fatal(err)
	}
	report, err := m.Collect(context.Background())
	for _, d := range report.Plan.Decisions {
		fmt.Println(d)
	}
	fmt.Println(err)
	// Output:
	// removed docker.io/library/web:1 for space which freed 10 of 40
	// docker.io/library/web:1: remove (candidate, never used)
	// docker.io/library/job:1: keep (kept, as "*/job:*")
	// docker.io/library/web:2: keep (in use, by container default/web[c])
	// <nil>
}

// A plan is a dry run: it reports which images would be removed, and why.
func ExampleInputs_Plan() {
	now := time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC)
	image := func(name string, unused time.Duration) imagegc.Record {
		return imagegc.Record{
			Image:         runtime.Image{ID: name, Tags: []string{name}, Size: 10},
			FirstDetected: now.Add(-1000 * time.Hour), LastUsed: now.Add(-unused),
		}
	}
	plan, err := imagegc.Inputs{
		Records: []imagegc.Record{image("a", time.Hour), image("b", 9*time.Hour), image("c", 200*time.Hour)},
		Space:   imagegc.Space{Capacity: 100, Available: 2},
		Policy:  imagegc.Policy{MaxAge: 168 * time.Hour},
		Since:   now.Add(-1000 * time.Hour), Now: now,
	}.Plan()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%d%% used, %d to free\n", plan.UsagePercent, plan.Free)
	for _, d := range plan.Decisions {
		fmt.Println(d)
	}
	// Output:
	// 98% used, 18 to free
	// c: remove (aged, unused for 200h0m0s, more than 168h0m0s)
	// b: remove (candidate, unused for 9h0m0s)
	// a: keep (candidate, unused for 1h0m0s)
}

// Rank replaces the ranking: the largest images are removed first. Images of equal size are
// removed in the default order.
func ExampleInputs_rank() {
	now := time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC)
	image := func(name string, size uint64, unused time.Duration) imagegc.Record {
		return imagegc.Record{
			Image:         runtime.Image{ID: name, Tags: []string{name}, Size: size},
			FirstDetected: now.Add(-1000 * time.Hour), LastUsed: now.Add(-unused),
		}
	}
	plan, err := imagegc.Inputs{
		Records: []imagegc.Record{image("small", 10, 9*time.Hour), image("large", 30, time.Hour), image("unused", 30, 2*time.Hour)},
		Space:   imagegc.Space{Capacity: 100, Available: 2},
		Policy: imagegc.Policy{Rank: func(a, b *imagegc.Record) (int, string) {
			return cmp.Compare(b.Image.Size, a.Image.Size), "size"
		}},
		Since: now.Add(-1000 * time.Hour), Now: now,
	}.Plan()
	if err != nil {
		log.Fatal(err)
	}
	for _, d := range plan.Decisions {
		fmt.Printf("%s precedes the next by %q\n", d, d.RankReason)
	}
	// Output:
	// unused: remove (candidate, unused for 2h0m0s) precedes the next by "last used"
	// large: keep (candidate, unused for 1h0m0s) precedes the next by "size"
	// small: keep (candidate, unused for 9h0m0s) precedes the next by ""
}
