package scheduler_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeparts/kubeparts/sim/scheduler"
)

const (
	host  = v1.LabelHostname
	zones = v1.LabelTopologyZone
)

// Each pod is placed on the node, or on none with the reason.
func TestPodsArePlacedAsByKubeScheduler(t *testing.T) {
	gpu := []*v1.Node{newNode("a", taint(v1.TaintEffectNoSchedule)), newNode("b")}
	two := []*v1.Node{newNode("a"), newNode("b")}
	inZones := []*v1.Node{newNode("a", zone("x")), newNode("b", zone("x")), newNode("c", zone("y"))}
	for name, test := range map[string]struct {
		nodes []*v1.Node
		pods  []on
		pod   *v1.Pod
		want  string // node, or message
	}{
		"no nodes":             {nil, nil, newPod("p"), "no nodes available to schedule pods"},
		"equal nodes":          {two, nil, newPod("p"), "a"},
		"the other has a pod":  {two, []on{{"a", newPod("q")}}, newPod("p"), "b"},
		"cordoned":             {[]*v1.Node{newNode("a", cordoned)}, nil, newPod("p"), "0/1 nodes are available: 1 node(s) were unschedulable."},
		"node name":            {two, nil, newPod("p", func(p *v1.Pod) { p.Spec.NodeName = "b" }), "b"},
		"another node name":    {two, nil, newPod("p", func(p *v1.Pod) { p.Spec.NodeName = "c" }), "0/2 nodes are available: 2 node(s) didn't match the requested node name."},
		"taint":                {gpu, nil, newPod("p"), "b"},
		"tolerated taint":      {gpu[:1], nil, newPod("p", tolerates), "a"},
		"untolerated taint":    {gpu[:1], nil, newPod("p"), "0/1 nodes are available: 1 node(s) had untolerated taint(s)."},
		"NoExecute taint":      {[]*v1.Node{newNode("a", taint(v1.TaintEffectNoExecute))}, nil, newPod("p"), "0/1 nodes are available: 1 node(s) had untolerated taint(s)."},
		"soft taint":           {[]*v1.Node{newNode("a", taint(v1.TaintEffectPreferNoSchedule)), newNode("b")}, []on{{"b", newPod("q", requests("cpu", "6"))}}, newPod("p"), "b"},
		"only a soft taint":    {[]*v1.Node{newNode("a", taint(v1.TaintEffectPreferNoSchedule))}, nil, newPod("p"), "a"},
		"node selector":        {[]*v1.Node{newNode("a"), newNode("b", nodeLabel("disk", "ssd"))}, nil, newPod("p", selects("disk", "ssd")), "b"},
		"no node is selected":  {two, nil, newPod("p", selects("disk", "ssd")), "0/2 nodes are available: 2 node(s) didn't match Pod's node affinity/selector."},
		"preferred nodes":      {[]*v1.Node{newNode("a"), newNode("b", nodeLabel("disk", "ssd"))}, []on{{"b", newPod("q", requests("cpu", "4"))}}, newPod("p", prefers("disk", "ssd")), "b"},
		"host port":            {two, []on{{"a", newPod("q", hostPort("", 80))}}, newPod("p", hostPort("10.0.0.1", 80)), "b"},
		"host port of another": {two[:1], []on{{"a", newPod("q", hostPort("10.0.0.1", 80))}}, newPod("p", hostPort("10.0.0.2", 80)), "a"},
		"occupied host port":   {two[:1], []on{{"a", newPod("q", hostPort("10.0.0.1", 80))}}, newPod("p", hostPort("0.0.0.0", 80)), "0/1 nodes are available: 1 node(s) didn't have free ports for the requested pod ports."},
		"full":                 {[]*v1.Node{newNode("a", has("pods", "1"))}, []on{{"a", newPod("q")}}, newPod("p"), "0/1 nodes are available: 1 Too many pods."},
		"several resources":    {two[:1], nil, newPod("p", requests("cpu", "9", "memory", "64Gi", "example.com/gpu", "1")), "0/1 nodes are available: 1 Insufficient cpu, 1 Insufficient example.com/gpu, 1 Insufficient memory."},
		"extended resource":    {[]*v1.Node{newNode("a"), newNode("b", has("example.com/gpu", "1"))}, nil, newPod("p", requests("example.com/gpu", "1")), "b"},
		"several reasons": {
			[]*v1.Node{newNode("a", taint(v1.TaintEffectNoSchedule)), newNode("b"), newNode("c")}, nil, newPod("p", requests("cpu", "9")),
			"0/3 nodes are available: 1 node(s) had untolerated taint(s), 2 Insufficient cpu.",
		},
		"least allocated": {two, []on{{"a", newPod("q", requests("cpu", "2"))}, {"b", newPod("r")}, {"b", newPod("s")}}, newPod("p", requests("cpu", "1")), "b"},
		"balanced": {
			two, []on{{"a", newPod("q", requests("cpu", "4"))}, {"b", newPod("r", requests("memory", "16Gi"))}},
			newPod("p", requests("memory", "8Gi")), "a",
		},
		"a pod that has terminated": {[]*v1.Node{newNode("a", has("pods", "1"))}, []on{{"a", newPod("q", func(p *v1.Pod) { p.Status.Phase = v1.PodSucceeded })}}, newPod("p"), "a"},

		"affinity":                  {inZones, []on{{"c", newPod("db-0")}}, newPod("p", affine(false, "db", zones, 0)), "c"},
		"affinity in the zone":      {inZones, []on{{"a", newPod("db-0", requests("cpu", "8"))}}, newPod("p", affine(false, "db", zones, 0)), "b"},
		"affinity without pods":     {inZones, nil, newPod("p", affine(false, "db", zones, 0)), "0/3 nodes are available: 3 node(s) didn't match pod affinity rules."},
		"affinity to itself":        {inZones, nil, newPod("p", affine(false, "p", zones, 0)), "a"},
		"affinity without a label":  {two, nil, newPod("p", affine(false, "p", zones, 0)), "0/2 nodes are available: 2 node(s) didn't match pod affinity rules."},
		"affinity in the namespace": {two, []on{{"b", newPod("db-0", namespace("other"))}}, newPod("p", affine(false, "db", host, 0)), "0/2 nodes are available: 2 node(s) didn't match pod affinity rules."},
		"affinity to a namespace": {two, []on{{"b", newPod("db-0", namespace("other"))}}, newPod("p", affine(false, "db", host, 0, func(t *v1.PodAffinityTerm) {
			t.Namespaces = []string{"other"}
		})), "b"},
		"affinity to selected namespaces": {two, []on{{"b", newPod("db-0", namespace("other"))}}, newPod("p", affine(false, "db", host, 0, func(t *v1.PodAffinityTerm) {
			t.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{v1.LabelMetadataName: "other"}}
		})), "b"},
		"anti-affinity":          {inZones, []on{{"a", newPod("db-0")}}, newPod("p", affine(true, "db", zones, 0)), "c"},
		"anti-affinity of a pod": {two, []on{{"a", newPod("db-0", affine(true, "p", host, 0))}}, newPod("p"), "b"},
		"anti-affinity everywhere": {
			two, []on{{"a", newPod("db-0")}, {"b", newPod("q", affine(true, "p", host, 0))}}, newPod("p", affine(true, "db", host, 0)),
			"0/2 nodes are available: 1 node(s) didn't match pod anti-affinity rules, 1 node(s) didn't satisfy existing pods anti-affinity rules.",
		},
		"preferred affinity":      {two, []on{{"b", newPod("db-0", requests("cpu", "2"))}}, newPod("p", affine(false, "db", host, 100)), "b"},
		"preferred anti-affinity": {two, []on{{"a", newPod("db-0")}, {"b", newPod("q", requests("cpu", "4"))}}, newPod("p", affine(true, "db", host, 100)), "b"},
		"required affinity of a pod attracts": {two, []on{
			{"b", newPod("p-0", affine(false, "p", host, 0), requests("cpu", "4"))},
		}, newPod("p-1"), "b"},

		"spread": {inZones, []on{{"a", newPod("p-0")}}, newPod("p-1", spreads(zones, 1, v1.DoNotSchedule)), "c"},
		"spread without a label": {
			[]*v1.Node{newNode("a")}, nil, newPod("p-0", spreads(zones, 1, v1.DoNotSchedule)),
			"0/1 nodes are available: 1 node(s) didn't match pod topology spread constraints (missing required label).",
		},
		"spread to a full zone": {
			[]*v1.Node{newNode("a", zone("x")), newNode("b", zone("y"), has("pods", "0"))}, []on{{"a", newPod("p-0")}}, newPod("p-1", spreads(zones, 1, v1.DoNotSchedule)),
			"0/2 nodes are available: 1 Too many pods, 1 node(s) didn't match pod topology spread constraints.",
		},
		"spread over selected nodes": {
			[]*v1.Node{newNode("a", zone("x"), nodeLabel("disk", "ssd")), newNode("b", zone("y"))}, []on{{"a", newPod("p-0")}},
			newPod("p-1", selects("disk", "ssd"), spreads(zones, 1, v1.DoNotSchedule)), "a",
		},
		"spread over too few domains": {
			inZones[:2], []on{{"a", newPod("p-0")}}, newPod("p-1", spreads(zones, 1, v1.DoNotSchedule, func(c *v1.TopologySpreadConstraint) { c.MinDomains = new(int32(2)) })),
			"0/2 nodes are available: 2 node(s) didn't match pod topology spread constraints.",
		},
		"spread ignores terminating pods": {inZones[1:], []on{{"b", newPod("p-0", terminating)}, {"c", newPod("q")}, {"c", newPod("r")}}, newPod("p-1", spreads(zones, 1, v1.DoNotSchedule)), "b"},
		"preferred spread":                {inZones, []on{{"a", newPod("p-0")}, {"c", newPod("q", requests("cpu", "4"))}}, newPod("p-1", spreads(zones, 1, v1.ScheduleAnyway)), "c"},
		"preferred spread over hosts":     {two, []on{{"a", newPod("p-0")}, {"b", newPod("q", requests("cpu", "4"))}}, newPod("p-1", spreads(host, 1, v1.ScheduleAnyway)), "b"},
	} {
		t.Run(name, func(t *testing.T) {
			c := scheduler.NewCluster()
			for _, p := range test.pods[:len(test.pods)/2] { // pods may be added before their nodes
				c.SetPod(p.pod, p.node)
			}
			for _, n := range test.nodes {
				c.SetNode(n)
			}
			for _, p := range test.pods[len(test.pods)/2:] {
				c.SetPod(p.pod, p.node)
			}
			node, err := c.Place(test.pod)
			if err != nil {
				assert.Empty(t, node)
				node = err.Error()
			}
			assert.Equal(t, test.want, node)
		})
	}
}

func prefers(key, value string) editPod {
	return func(p *v1.Pod) {
		p.Spec.Affinity = &v1.Affinity{NodeAffinity: &v1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []v1.PreferredSchedulingTerm{{
			Weight: 1, Preference: v1.NodeSelectorTerm{MatchExpressions: []v1.NodeSelectorRequirement{{Key: key, Operator: v1.NodeSelectorOpIn, Values: []string{value}}}},
		}}}}
	}
}

func TestUpdatesAndRemovalsFreeWhatWasOccupied(t *testing.T) {
	c := scheduler.NewCluster()
	c.SetNode(newNode("a"))
	big := newPod("big", requests("cpu", "8"), hostPort("", 80), affine(true, "p", host, 0))
	c.SetPod(big, "a")
	pod := newPod("p", requests("cpu", "2"), hostPort("", 80))
	_, err := c.Place(pod)
	require.Error(t, err)

	resized := big.DeepCopy()
	resized.Spec.Containers[0].Resources.Requests = nil
	resized.Spec.Containers[0].Ports = nil
	resized.Spec.Affinity = nil
	c.SetPod(resized, "a")
	node, err := c.Place(pod)
	require.NoError(t, err)
	assert.Equal(t, "a", node)

	c.SetPod(big, "a")
	c.RemovePod(big.UID)
	c.RemovePod("unknown")
	_, err = c.Place(pod)
	require.NoError(t, err)

	c.SetPod(big, "a")
	c.RemoveNode("a")
	c.RemoveNode("a")
	_, err = c.Place(pod)
	assert.EqualError(t, err, "no nodes available to schedule pods")
	c.SetNode(newNode("a"))
	_, err = c.Place(pod)
	assert.EqualError(t, err, "0/1 nodes are available: 1 node(s) didn't have free ports for the requested pod ports.", "its pods remain")
	c.SetNode(newNode("a", cordoned))
	_, err = c.Place(pod)
	assert.EqualError(t, err, "0/1 nodes are available: 1 node(s) were unschedulable.")
}

func TestNamespacesAreSelectedByTheirLabels(t *testing.T) {
	c := scheduler.NewCluster()
	c.SetNode(newNode("a"))
	c.SetNode(newNode("b"))
	c.SetPod(newPod("db-0", namespace("other")), "b")
	pod := newPod("p", affine(false, "db", host, 0, func(t *v1.PodAffinityTerm) {
		t.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"team": "x"}}
	}))
	_, err := c.Place(pod)
	require.Error(t, err)
	c.SetNamespace("other", map[string]string{"team": "x"})
	node, err := c.Place(pod)
	require.NoError(t, err)
	assert.Equal(t, "b", node)
	c.RemoveNamespace("other")
	_, err = c.Place(pod)
	require.Error(t, err)
}

func TestPodsAreOrderedByPriorityThenAge(t *testing.T) {
	old := func(p *v1.Pod) { p.CreationTimestamp = metav1.NewTime(time.Unix(1, 0)) }
	important := func(p *v1.Pod) { p.Spec.Priority = new(int32(7)) }
	pods := []*v1.Pod{newPod("b", important), newPod("a", old), newPod("b", old), newPod("a", old, namespace("zoo"))}
	for i := range pods {
		for j := range pods {
			if i < j {
				// The zero time is the oldest, which does not matter before priority.
				assert.Negative(t, scheduler.Compare(pods[i], pods[j]), "%d %d", i, j)
				assert.Positive(t, scheduler.Compare(pods[j], pods[i]), "%d %d", j, i)
			}
		}
	}
	assert.Zero(t, scheduler.Compare(pods[0], pods[0]))
}

func TestReplicasAreSpreadOverNodesAndZones(t *testing.T) {
	c := scheduler.NewCluster()
	for i, z := range []string{"x", "x", "x", "y", "y", "z"} {
		c.SetNode(newNode(string(rune('a'+i)), zone(z)))
	}
	perZone := map[string]int{}
	zoneOf := map[string]string{"a": "x", "b": "x", "c": "x", "d": "y", "e": "y", "f": "z"}
	for _, pod := range replicas("web", 30, spreads(zones, 1, v1.DoNotSchedule)) {
		node, err := c.Place(pod)
		require.NoError(t, err)
		c.SetPod(pod, node)
		perZone[zoneOf[node]]++
	}
	assert.Equal(t, map[string]int{"x": 10, "y": 10, "z": 10}, perZone)
}
