package device_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/kubeparts/kubeparts/cm/device"
	"github.com/kubeparts/kubeparts/cm/topology"
)

func devices(ids string, nodes ...int) map[string]device.Device {
	out := map[string]device.Device{}
	for _, id := range ids {
		out[string(id)] = device.Device{ID: string(id), Healthy: true, Nodes: topology.MaskOf(nodes...)}
	}
	return out
}

func plus(all ...map[string]device.Device) map[string]device.Device {
	out := map[string]device.Device{}
	for _, m := range all {
		for id, d := range m {
			out[id] = d
		}
	}
	return out
}

// dev-6: the order in which devices are chosen.
func TestDevicesAreChosenInOrder(t *testing.T) {
	near := plus(devices("cd", 0), devices("ef", 1), devices("ab"))
	at := func(nodes ...int) topology.Hint { return topology.Hint{Nodes: topology.MaskOf(nodes...)} }
	prefer := func(ids ...string) device.Preference {
		return func([]string, []string, int) []string { return ids }
	}
	for name, tc := range map[string]struct {
		reusable map[string]device.Device
		n        int
		where    topology.Hint
		prefer   device.Preference
		want     string
	}{
		"the lowest":                    {n: 2, want: "[a b]"},
		"close ones":                    {n: 2, where: at(1), want: "[e f]"},
		"close ones, the preferred":     {n: 1, where: at(1), prefer: prefer("f"), want: "[f]"},
		"close before preferred":        {n: 1, where: at(1), prefer: prefer("a"), want: "[e]"},
		"then preferred":                {n: 3, where: at(1), prefer: prefer("a"), want: "[a e f]"},
		"then far ones":                 {n: 3, where: at(1), want: "[c e f]"},
		"then those that are nowhere":   {n: 5, where: at(1), want: "[a c d e f]"},
		"used again":                    {reusable: devices("z"), n: 2, want: "[a z]"},
		"used again, and no more":       {reusable: devices("yz"), n: 1, want: "[y]"},
		"preferred without a hint":      {n: 2, prefer: prefer("f", "c", "no"), want: "[c f]"},
		"all that there are":            {n: 9, want: "[a b c d e f]"},
		"with the hint of both":         {n: 1, where: at(0, 1), want: "[c]"},
		"preferred ones are not enough": {n: 3, prefer: prefer("f"), want: "[a b f]"},
	} {
		assert.Equal(t, tc.want, fmt.Sprint(device.Choose(near, tc.reusable, tc.n, tc.where, tc.prefer)), name)
	}
}

func TestHintsListTheNodesWithFreeDevices(t *testing.T) {
	nodes := topology.MaskOf(0, 1)
	formatted := func(all, free, reusable map[string]device.Device, n int) string {
		hints := device.Hints(nodes, all, free, reusable, n)
		if hints == nil {
			return "any"
		}
		text := ""
		for _, h := range hints {
			text += fmt.Sprintf("{%s %v}", h.Nodes, h.Preferred)
		}
		return text
	}
	all := plus(devices("ab", 0), devices("cd", 1))
	assert.Equal(t, "{0 true}{1 true}{0,1 false}", formatted(all, all, nil, 2))
	assert.Equal(t, "{1 true}{0,1 false}", formatted(all, devices("cd", 1), nil, 2))
	assert.Equal(t, "{0,1 false}", formatted(all, plus(devices("b", 0), devices("c", 1)), nil, 2))
	assert.Equal(t, "{0,1 true}", formatted(all, all, nil, 3))
	assert.Equal(t, "", formatted(all, devices("a", 0), nil, 2))
	assert.Equal(t, "{0 true}{0,1 false}", formatted(all, devices("bcd", 0), devices("a", 0), 2))
	assert.Equal(t, "any", formatted(devices("ab"), devices("ab"), nil, 1))
}

// dev-2
func TestIsExtendedResource(t *testing.T) {
	for name, want := range map[string]bool{
		"example.com/x": true, "nvidia.com/gpu": true, "cpu": false, "hugepages-2Mi": false, "kubernetes.io/batch": false,
		"sub.kubernetes.io/x": false, "requests.example.com/x": false, "/x": false, "example.com/": false, "a/b/c": false, "": false,
	} {
		assert.Equal(t, want, device.Extended(name), name)
	}
}
