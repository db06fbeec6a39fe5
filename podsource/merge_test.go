package podsource_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/internal/seedrun"
	"github.com/kubeparts/kubeparts/podsource"
	"github.com/kubeparts/kubeparts/runtime"
)

func TestMergeReportsChanges(t *testing.T) {
	deleted := func(p *v1.Pod) { p.DeletionTimestamp = new(metav1.Unix(1000, 0)) }
	label := func(p *v1.Pod) { p.Labels = map[string]string{"a": "b"} }
	annotation := func(p *v1.Pod) { p.Annotations = map[string]string{"a": "b"} }
	local := func(p *v1.Pod) {
		p.Annotations = map[string]string{runtime.ConfigSourceAnnotation: "x", runtime.ConfigSeenAnnotation: "y", v1.MirrorPodAnnotationKey: "z"}
	}
	for name, tc := range map[string]struct {
		old, next []*v1.Pod
		want      []string
	}{
		"src-5 new UID":                   {nil, []*v1.Pod{pod("a")}, []string{"add file/a"}},
		"src-5 missing UID":               {[]*v1.Pod{pod("a")}, nil, []string{"remove file/a"}},
		"src-6 spec":                      {[]*v1.Pod{pod("a", image("1"))}, []*v1.Pod{pod("a", image("2"))}, []string{"update file/a"}},
		"src-6 labels":                    {[]*v1.Pod{pod("a")}, []*v1.Pod{pod("a", label)}, []string{"update file/a"}},
		"src-6 annotations":               {[]*v1.Pod{pod("a")}, []*v1.Pod{pod("a", annotation)}, []string{"update file/a"}},
		"src-6 deletionTimestamp":         {[]*v1.Pod{pod("a")}, []*v1.Pod{pod("a", deleted)}, []string{"update file/a"}},
		"src-6 generation":                {[]*v1.Pod{pod("a", func(p *v1.Pod) { p.Generation = 1 })}, []*v1.Pod{pod("a", func(p *v1.Pod) { p.Generation = 3 })}, []string{"update file/a"}},
		"src-6 deletion grace":            {[]*v1.Pod{pod("a")}, []*v1.Pod{pod("a", func(p *v1.Pod) { p.DeletionGracePeriodSeconds = new(int64(1)) })}, []string{"update file/a"}},
		"src-7 status only":               {[]*v1.Pod{pod("a")}, []*v1.Pod{pod("a", func(p *v1.Pod) { p.Status.Phase = v1.PodRunning })}, nil},
		"src-8 local annotations":         {[]*v1.Pod{pod("a")}, []*v1.Pod{pod("a", local)}, nil},
		"src-9 resourceVersion":           {[]*v1.Pod{pod("a")}, []*v1.Pod{pod("a", func(p *v1.Pod) { p.ResourceVersion = "2" })}, nil},
		"src-10 order":                    {[]*v1.Pod{pod("a"), pod("b")}, []*v1.Pod{pod("b", label), pod("c")}, []string{"remove file/a", "add file/c", "update file/b"}},
		"inv-13 the same again":           {[]*v1.Pod{pod("a", image("1")), pod("b")}, []*v1.Pod{pod("a", image("1")), pod("b")}, nil},
		"another order":                   {[]*v1.Pod{pod("a"), pod("b")}, []*v1.Pod{pod("b"), pod("a")}, nil},
		"the same name under another UID": {[]*v1.Pod{pod("a")}, []*v1.Pod{pod("a", uid("2"))}, []string{"remove file/a", "add file/a"}},
		"another name under the same UID": {[]*v1.Pod{pod("a")}, []*v1.Pod{pod("b", uid("a"))}, []string{"remove file/a", "add file/b"}},
		"nil and nothing":                 {[]*v1.Pod{nil}, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var memory podsource.Memory
				var sink journal
				startMerge(t, podsource.MergeConfig{Sources: map[string]podsource.PodSource{"file": &memory}, Sink: &sink})
				assert.Empty(t, sink.take(), "not synced yet")
				memory.Set(tc.old...)
				first := sink.take()
				require.NotEmpty(t, first)
				assert.Equal(t, "synced file", first[len(first)-1], "src-12")
				memory.Set(tc.next...)
				assert.Equal(t, tc.want, sink.take())
			})
		})
	}
}

// A follower is a journal that records changed statuses as well.
type follower struct{ journal }

func (f *follower) ReconcilePods(pods []*v1.Pod) { f.put("reconcile", pods, true) }

func TestChangedStatusesAreReconciled(t *testing.T) { // src-7, src-10
	synctest.Test(t, func(t *testing.T) {
		running := func(p *v1.Pod) { p.Status.Phase = v1.PodRunning }
		var memory podsource.Memory
		var sink follower
		var infos []podsource.SetInfo
		startMerge(t, podsource.MergeConfig{
			Sources: map[string]podsource.PodSource{"api": &memory}, Sink: &sink,
			Hooks: podsource.MergeHooks{Set: func(i podsource.SetInfo) { infos = append(infos, i) }},
		})
		memory.Set(pod("a"), pod("b", running))
		sink.take()
		memory.Set(pod("a", running), pod("b", running))
		assert.Equal(t, []string{"reconcile api/a"}, sink.take())
		assert.Equal(t, v1.PodRunning, sink.pods["a"].Status.Phase)
		assert.Equal(t, 1, infos[1].Reconciled)
		memory.Set(pod("a"), pod("b", image("2")), pod("c", running))
		assert.Equal(t, []string{"add api/c", "update api/b", "reconcile api/a api/b"}, sink.take())
		memory.Set(pod("a"), pod("b", image("2")), pod("c", running))
		assert.Empty(t, sink.take(), "inv-13")
	})
}

func TestMergeMarksPodsWithoutChangingThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var memory podsource.Memory
		var sink journal
		startMerge(t, podsource.MergeConfig{Sources: map[string]podsource.PodSource{"mine": &memory}, Sink: &sink})
		given := pod("a", image("1"))
		memory.Set(given)
		sink.take()
		got := sink.pods["a"]
		assert.Equal(t, "mine", got.Annotations[runtime.ConfigSourceAnnotation], "src-2")
		seen := got.Annotations[runtime.ConfigSeenAnnotation]
		assert.Equal(t, time.Now().Format("2006-01-02T15:04:05.000000000Z07:00"), seen, "src-3")
		assert.Empty(t, given.Annotations)

		time.Sleep(time.Minute)
		memory.Set(pod("a", image("1")))
		assert.Empty(t, sink.take())
		memory.Set(pod("a", image("2")))
		assert.Equal(t, []string{"update mine/a"}, sink.take())
		assert.Equal(t, seen, sink.pods["a"].Annotations[runtime.ConfigSeenAnnotation], "the time is that of the first set")
	})
}

// Whether a pod is static depends neither on the name of its source nor on its annotations.
func TestASourceIsStaticByItsConfiguration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sources, static := map[string]podsource.PodSource{}, []string{"configured", podsource.APISource + "-like"}
		var sink journal
		for _, name := range []string{"mine", "configured", podsource.APISource, podsource.APISource + "-like", podsource.FileSource} {
			var memory podsource.Memory
			memory.Set(pod(name, func(p *v1.Pod) {
				p.Annotations = map[string]string{runtime.ConfigStaticAnnotation: "true", runtime.ConfigSourceAnnotation: "file"}
			}))
			sources[name] = &memory
		}
		startMerge(t, podsource.MergeConfig{Sources: sources, Static: static, Sink: &sink})
		sink.take()
		for name := range sources {
			assert.Equal(t, slices.Contains(static, name), runtime.IsStatic(sink.pods[types.UID(name)]), name)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		var memory podsource.Memory
		var sink journal
		startMerge(t, podsource.MergeConfig{Sources: map[string]podsource.PodSource{podsource.APISource: &memory}, Static: []string{podsource.APISource}, Sink: &sink})
		memory.Set(pod("a"))
		sink.take()
		assert.True(t, runtime.IsStatic(sink.pods["a"]))
	})
}

func TestAChangeWithoutEffectIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var memory podsource.Memory
		var sink journal
		var events []string
		startMerge(t, podsource.MergeConfig{Sources: map[string]podsource.PodSource{"mine": &memory}, Sink: &sink, Record: func(e runtime.Event) {
			events = append(events, e.Type+" "+e.Reason+" "+e.Object.Name+": "+e.Message)
		}})
		base := func(change func(*v1.Pod)) *v1.Pod {
			p := pod("a", image("1"))
			p.Spec.Containers[0].Name, p.Spec.Containers[0].Command = "web", []string{"run"}
			change(p)
			return p
		}
		memory.Set(base(func(*v1.Pod) {}))
		memory.Set(base(func(p *v1.Pod) { // has an effect
			p.Labels = map[string]string{"a": "b"}
			p.Spec.Containers[0].Image, p.Spec.ActiveDeadlineSeconds = "2", new(int64(3))
			p.Spec.Containers[0].Resources.Limits = v1.ResourceList{v1.ResourceCPU: resource.MustParse("1")}
			p.Spec.Tolerations = []v1.Toleration{{Key: "x"}}
		}))
		sink.take()
		assert.Empty(t, events)
		changed := base(func(p *v1.Pod) {
			p.Spec.Containers[0].Command, p.Spec.Containers[0].Env = []string{"other"}, []v1.EnvVar{{Name: "A"}}
			p.Spec.HostNetwork = true
		})
		memory.Set(changed)
		assert.Equal(t, []string{"update mine/a"}, sink.take())
		want := []string{"Warning ChangeWithoutEffect a: Change has no effect on what runs, since the pod has the same UID: " +
			"spec.hostNetwork, spec.containers{web}.command, spec.containers{web}.env"}
		assert.Equal(t, want, events)
		memory.Set(changed)
		sink.take()
		assert.Equal(t, want, events, "once for each change")

		memory.Set(base(func(p *v1.Pod) { p.UID, p.Spec.Containers = "2", append(p.Spec.Containers, v1.Container{Name: "new"}) }))
		assert.Equal(t, []string{"remove mine/a", "add mine/a"}, sink.take())
		assert.Equal(t, want, events, "another pod")
	})
}

func TestAPodIsNotCopied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		given := pod("a", image("1"))
		given.Annotations = map[string]string{"own": "1"}
		given.Labels = map[string]string{"app": "a"}
		var sink journal
		startMerge(t, podsource.MergeConfig{Sources: map[string]podsource.PodSource{
			"mine": podsource.Func(func(_ context.Context, set func([]*v1.Pod)) error {
				set([]*v1.Pod{given})
				return nil
			}),
		}, Sink: &sink})
		sink.take()
		got := sink.pods["a"]
		assert.Same(t, &given.Spec.Containers[0], &got.Spec.Containers[0])
		assert.Equal(t, given.Labels, got.Labels)
		assert.Equal(t, "1", got.Annotations["own"])
		assert.Equal(t, map[string]string{"own": "1"}, given.Annotations)
	})
}

func TestMergeRejectsPodsWithoutAnIdentityOfTheirOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var memory podsource.Memory
		var sink journal
		var events []string
		startMerge(t, podsource.MergeConfig{
			Sources: map[string]podsource.PodSource{"file": podsource.Func(memory.Run)}, Sink: &sink,
			Record: func(e runtime.Event) {
				events = append(events, fmt.Sprintf("%s %s %s: %s", e.Type, e.Reason, e.Object.Name, e.Message))
			},
		})
		set := []*v1.Pod{pod("a"), pod("a", uid("2")), pod("b", uid("a")), pod("c", uid("")), pod(""), pod("e")}
		set[4].UID = "d"
		set[5].Namespace = ""
		memory.Set(set...)
		assert.Equal(t, []string{"add file/a", "synced file"}, sink.take())
		assert.Equal(t, []string{
			`Warning FailedValidation a: Error validating pod a_default(2) from file due to duplicate pod name "a", ignoring`,
			`Warning FailedValidation b: Error validating pod b_default(a) from file due to duplicate pod UID "a", ignoring`,
			`Warning FailedValidation c: Error validating pod c_default() from file without a UID, ignoring`,
			`Warning FailedValidation : Error validating pod _default(d) from file without a name, ignoring`,
			`Warning FailedValidation e: Error validating pod e_(e) from file without a namespace, ignoring`,
		}, events, "src-4")
		memory.Set(set...)
		assert.Empty(t, sink.take())
		assert.Len(t, events, 5, "reported once")
		memory.Set(set[1])
		assert.Equal(t, []string{"remove file/a", "add file/a"}, sink.take())
	})
}

func TestOfTwoSourcesWithOneUIDTheFirstHasIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var a, b podsource.Memory
		var sink journal
		var events []string
		var infos []podsource.SetInfo
		startMerge(t, podsource.MergeConfig{
			Sources: map[string]podsource.PodSource{"a": &a, "b": &b}, Sink: &sink,
			Record: func(e runtime.Event) { events = append(events, e.Message) },
			Hooks:  podsource.MergeHooks{Set: func(i podsource.SetInfo) { infos = append(infos, i) }},
		})
		b.Set(pod("x"), pod("same", uid("1")))
		assert.Equal(t, []string{"add b/x b/same", "synced b"}, sink.take())
		a.Set(pod("x"), pod("same", uid("2")))
		assert.Equal(t, []string{"add a/same", "synced a"}, sink.take(), "one full name in two sources is allowed")
		assert.Equal(t, []string{"Error validating pod x_default(x) from a due to its UID being in use by source b, ignoring"}, events)
		assert.Equal(t, podsource.SetInfo{Source: "a", Pods: 1, Rejected: 1, Added: 1}, infos[1])

		b.Remove("x")
		assert.Equal(t, []string{"remove b/x", "add a/x"}, sink.take(), "the other source takes over")
		b.Add(pod("x"))
		assert.Empty(t, sink.take())
		a.Remove("x")
		assert.Equal(t, []string{"remove a/x", "add b/x"}, sink.take())
	})
}

func TestAFailedSourceIsStartedAgainAndItsPodsStay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var starts []time.Duration
		var waits []time.Duration
		flaky := podsource.Func(func(ctx context.Context, set func([]*v1.Pod)) error {
			starts = append(starts, time.Since(start))
			switch len(starts) {
			case 1:
				set([]*v1.Pod{pod("a")})
			case 8:
				set([]*v1.Pod{pod("a")})
			}
			return errors.New("lost connection")
		})
		var other podsource.Memory
		var sink journal
		startMerge(t, podsource.MergeConfig{
			Sources: map[string]podsource.PodSource{"api": flaky, "file": &other}, Sink: &sink,
			Hooks: podsource.MergeHooks{Failed: func(_ string, err error, retryIn time.Duration) {
				assert.EqualError(t, err, "lost connection")
				waits = append(waits, retryIn/time.Second)
			}},
		})
		time.Sleep(2 * time.Second)
		other.Set(pod("b"))
		time.Sleep(98 * time.Second)
		assert.Equal(t, []string{"add api/a", "synced api", "add file/b", "synced file"}, sink.take(), "the other source is not affected, and the pods stay")
		assert.Equal(t, []time.Duration{1, 2, 4, 8, 16, 20, 20, 1, 2, 4, 8, 16}, waits, "src-28")
	})
}

func TestASourceMayEndAndItsPodsStay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runs := 0
		fixed := podsource.Func(func(ctx context.Context, set func([]*v1.Pod)) error {
			runs++
			set([]*v1.Pod{pod("a")})
			return nil
		})
		var sink journal
		startMerge(t, podsource.MergeConfig{Sources: map[string]podsource.PodSource{"fixed": fixed}, Sink: &sink})
		time.Sleep(time.Hour)
		assert.Equal(t, []string{"add fixed/a", "synced fixed"}, sink.take())
		assert.Equal(t, 1, runs)
	})
}

func TestASetAfterTheEndIsIgnored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var late func([]*v1.Pod)
		leaky := podsource.Func(func(ctx context.Context, set func([]*v1.Pod)) error {
			late = set
			return nil
		})
		var sink journal
		startMerge(t, podsource.MergeConfig{Sources: map[string]podsource.PodSource{"leaky": leaky}, Sink: &sink})
		synctest.Wait()
		late([]*v1.Pod{pod("a")})
		assert.Empty(t, sink.take())
	})
}

func TestNewMergeRefusesABadConfig(t *testing.T) {
	var sink journal
	source := map[string]podsource.PodSource{"x": new(podsource.Memory)}
	for want, cfg := range map[string]podsource.MergeConfig{
		"podsource: MergeConfig.Sources is empty":                    {Sink: &sink},
		"podsource: MergeConfig.Sink is nil":                         {Sources: source},
		`podsource: MergeConfig.Sources["x"] is nil`:                 {Sink: &sink, Sources: map[string]podsource.PodSource{"x": nil}},
		`podsource: MergeConfig.Static: "y" is not in Sources`:       {Sink: &sink, Sources: source, Static: []string{"y"}},
		"podsource: MergeConfig.Sources has a source without a name": {Sink: &sink, Sources: map[string]podsource.PodSource{"": new(podsource.Memory)}},
	} {
		_, err := podsource.NewMerge(cfg)
		assert.EqualError(t, err, want)
	}
}

// The calls add up to the union of the sets, in any order of the sets. The journal panics if a
// pod is added twice, or is updated or removed without having been added.
func TestTheCallsAddUpToTheSets(t *testing.T) { // src-13
	seed := seedrun.Seed(t)
	synctest.Test(t, func(t *testing.T) {
		rnd := rand.New(rand.NewPCG(seed, 0))
		sources := map[string]*podsource.Memory{"a": {}, "b": {}, "c": {}}
		var sink journal
		startMerge(t, podsource.MergeConfig{Sources: map[string]podsource.PodSource{
			"a": sources["a"], "b": sources["b"], "c": sources["c"]}, Sink: &sink})
		desired := make(map[string]map[types.UID]*v1.Pod)
		for range 500 {
			source := []string{"a", "b", "c"}[rnd.IntN(3)]
			set := make(map[types.UID]*v1.Pod)
			for range rnd.IntN(6) {
				// Each UID has two names: some pods are renamed.
				id := rnd.IntN(8)
				p := pod(fmt.Sprintf("p%d-%d", id, rnd.IntN(2)), uid(types.UID(fmt.Sprint(id))), image(fmt.Sprint(rnd.IntN(2))))
				set[p.UID] = p
			}
			desired[source] = set
			sources[source].Set(slices.Collect(maps.Values(set))...)
			synctest.Wait()

			union := make(map[types.UID]bool)
			for _, s := range desired {
				for id := range s {
					union[id] = true
				}
			}
			require.Len(t, sink.pods, len(union))
			for id, got := range sink.pods {
				want := desired[got.Annotations[runtime.ConfigSourceAnnotation]][id]
				require.NotNil(t, want, "pod %s is of a source whose set does not contain it", id)
				require.Equal(t, want.Name, got.Name)
				require.Equal(t, want.Spec, got.Spec)
			}
		}
	})
}
