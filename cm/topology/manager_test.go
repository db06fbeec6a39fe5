package topology_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/cm/topology"
	"github.com/kubeparts/kubeparts/cm/topology/topologytest"
	"github.com/kubeparts/kubeparts/runtime"
)

// A giver is a provider with configurable responses.
type giver struct {
	name  string
	log   *[]string
	hints []topology.Hint
	fail  map[string]error // by container
	late  error
	block bool
	holds bool
}

func (g *giver) Concerns(*v1.Pod) bool { return g.name != "idle" }

func (g *giver) Hints(_ *v1.Pod, c *v1.Container) topology.Hints {
	of := "pod"
	if c != nil {
		of = c.Name
	}
	*g.log = append(*g.log, g.name+" hints "+of)
	return topology.Hints{g.name: g.hints}
}

func (g *giver) Allocate(ctx context.Context, _ *v1.Pod, c *v1.Container, where topology.Hint) error {
	*g.log = append(*g.log, fmt.Sprintf("%s gives %s [%s]", g.name, c.Name, where.Nodes))
	if g.block {
		<-ctx.Done()
		return ctx.Err()
	}
	return g.fail[c.Name]
}

func (g *giver) Free(types.UID)           { *g.log = append(*g.log, g.name+" frees") }
func (g *giver) Wait(*v1.Pod) error       { return g.late }
func (g *giver) Holds(uid types.UID) bool { return g.holds }

func twoContainers() *v1.Pod {
	p := &v1.Pod{}
	p.Spec.InitContainers = []v1.Container{{Name: "init"}}
	p.Spec.Containers = []v1.Container{{Name: "main"}}
	return p
}

func node(id int) []topology.Hint {
	return []topology.Hint{{Nodes: topology.MaskOf(id), Preferred: true}}
}

// top-6: the order of providers, and of containers.
func TestProvidersAreCalledInOrder(t *testing.T) {
	for scope, want := range map[topology.Scope][]string{
		topology.ContainerScope: {
			"a hints init", "b hints init", "a gives init [1]", "b gives init [1]",
			"a hints main", "b hints main", "a gives main [1]", "b gives main [1]",
		},
		topology.PodScope: {"a hints pod", "b hints pod", "a gives init [1]", "b gives init [1]", "a gives main [1]", "b gives main [1]"},
	} {
		t.Run(string(scope), func(t *testing.T) {
			var log []string
			var reported []topology.AdmitInfo
			m, err := topology.NewManager(topology.Config{
				Machine: topologytest.Machine(t, "xeon-2s"), Policy: topology.Restricted, Scope: scope,
				Providers: []topology.Provider{&giver{name: "a", log: &log, hints: node(1)}, &giver{name: "b", log: &log, hints: node(1)}},
				Hooks:     topology.Hooks{Admitted: func(i topology.AdmitInfo) { reported = append(reported, i) }},
			})
			require.NoError(t, err)
			require.NoError(t, m.Admit(t.Context(), twoContainers()))
			assert.Equal(t, want, log)
			require.Len(t, reported, 1) // top-7
			assert.NoError(t, reported[0].Error)
		})
	}
}

// top-4, top-5.
func TestRejectionsHaveAReason(t *testing.T) {
	var log []string
	unlike := errors.New("no luck")
	own := &runtime.Rejection{Reason: "SMTAlignmentError", Message: "SMT Alignment Error: odd"}
	for name, tc := range map[string]struct {
		giver *giver
		want  runtime.Rejection
		frees bool
	}{
		"affinity":   {&giver{hints: []topology.Hint{{Nodes: 1}}}, runtime.Rejection{Reason: "TopologyAffinityError", Message: "Resources cannot be allocated with Topology locality"}, true},
		"allocation": {&giver{fail: map[string]error{"main": unlike}}, runtime.Rejection{Reason: "UnexpectedAdmissionError", Message: "Allocate failed due to no luck, which is unexpected", Err: unlike}, true},
		"its own":    {&giver{fail: map[string]error{"init": fmt.Errorf("cpu: %w", own)}}, *own, true},
		"late":       {&giver{late: unlike}, runtime.Rejection{Reason: "UnexpectedAdmissionError", Message: "no luck", Deferred: true, Err: unlike}, false},
		"had before": {&giver{holds: true, fail: map[string]error{"main": unlike}}, runtime.Rejection{Reason: "UnexpectedAdmissionError", Message: "Allocate failed due to no luck, which is unexpected", Err: unlike}, false},
	} {
		t.Run(name, func(t *testing.T) {
			log = nil
			tc.giver.name, tc.giver.log = "a", &log
			m, err := topology.NewManager(topology.Config{Machine: topologytest.Machine(t, "xeon-2s"), Policy: topology.Restricted, Providers: []topology.Provider{tc.giver}})
			require.NoError(t, err)
			var got *runtime.Rejection
			require.ErrorAs(t, m.Admit(t.Context(), twoContainers()), &got)
			assert.Equal(t, tc.want, *got)
			if tc.frees {
				assert.Contains(t, log, "a frees", "all or nothing")
			} else {
				assert.NotContains(t, log, "a frees")
			}
		})
	}
}

func TestTheRejectionOfAPodWithPodLevelResourcesNamesTheScope(t *testing.T) {
	const other = "Resources cannot be allocated with Topology locality"
	for _, tc := range []struct {
		scope, level topology.Scope
		resources    *v1.ResourceRequirements
		want         string
	}{
		{topology.PodScope, topology.PodScope, podLevel(), "Pod Scope pod with pod-level resources failed admission under pod-scope topology manager"},
		{topology.ContainerScope, topology.ContainerScope, podLevel(), "Pod Scope pod with pod-level resources failed admission with a container-level topology manager"},
		{topology.PodScope, "", podLevel(), other},
		{topology.PodScope, topology.PodScope, nil, other},
	} {
		m, err := topology.NewManager(topology.Config{
			Machine: topologytest.Machine(t, "xeon-2s"), Policy: topology.Restricted, Scope: tc.scope, PodLevel: tc.level,
			Providers: []topology.Provider{&giver{log: new([]string), hints: []topology.Hint{{Nodes: 1}}}},
		})
		require.NoError(t, err)
		pod := twoContainers()
		pod.Spec.Resources = tc.resources
		assert.Equal(t, &runtime.Rejection{Reason: "TopologyAffinityError", Message: tc.want}, m.Admit(t.Context(), pod))
	}
	_, err := topology.NewManager(topology.Config{Machine: topologytest.Machine(t, "xeon-2s"), PodLevel: "machine"})
	assert.EqualError(t, err, `topology: Config.PodLevel: unknown scope: "machine"`)
}

func podLevel() *v1.ResourceRequirements {
	return &v1.ResourceRequirements{Requests: v1.ResourceList{v1.ResourceMemory: resource.MustParse("1Gi")}}
}

func TestAPodWithoutAlignedResourcesDoesNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log, idle []string
		stuck := &giver{name: "stuck", log: &log, block: true}
		m, err := topology.NewManager(topology.Config{Machine: topologytest.Machine(t, "vm-1cpu"), Providers: []topology.Provider{stuck}})
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		first := make(chan error, 1)
		go func() { first <- m.Admit(ctx, twoContainers()) }()
		synctest.Wait()
		second := make(chan error, 1)
		waiting, give := context.WithCancel(t.Context())
		go func() { second <- m.Admit(waiting, twoContainers()) }()
		synctest.Wait()
		give()
		require.ErrorIs(t, <-second, context.Canceled, "it gave up")
		cancel()
		require.ErrorIs(t, <-first, context.Canceled, "a canceled call is no rejection")

		m, err = topology.NewManager(topology.Config{Machine: topologytest.Machine(t, "vm-1cpu"), Providers: []topology.Provider{&giver{name: "idle", log: &idle}}})
		require.NoError(t, err)
		require.NoError(t, m.Admit(t.Context(), twoContainers()))
		assert.Empty(t, idle)
	})
}
