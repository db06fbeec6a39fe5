package volumetest_test

import (
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/volume"
	"github.com/kubeparts/kubeparts/volume/volumetest"
)

var data = &volume.Spec{Volume: &v1.Volume{Name: "data"}}

// The fake plugin and the in-memory mounter are used by other packages' tests, and
// pass the same contract suite as real ones.
func TestTheFakePluginPassesTheSuite(t *testing.T) {
	volumetest.TestPlugin(t, volumetest.Suite{New: func(string) volume.Plugin { return new(volumetest.Plugin) }, Spec: data})
}

func TestTheFakePluginPassesTheSuiteWithMounts(t *testing.T) {
	mounter := new(volumetest.Mounter)
	volumetest.TestPlugin(t, volumetest.Suite{
		New: func(string) volume.Plugin { return &volumetest.Plugin{Mounter: mounter} }, Spec: data, Mounter: mounter,
	})
}

func TestTheFakePluginPassesTheSuiteWithBlockVolumes(t *testing.T) {
	volumetest.TestPlugin(t, volumetest.Suite{
		New: func(string) volume.Plugin {
			return &volumetest.Plugin{Capabilities: volumetest.Capabilities{Block: true}}
		},
		Spec: &volume.Spec{Volume: &v1.Volume{Name: "disk"}, Block: true},
	})
}
