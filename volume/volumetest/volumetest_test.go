package volumetest_test

import (
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/volume"
	"github.com/kubeparts/kubeparts/volume/volumetest"
)

var data = &volume.Spec{Volume: &v1.Volume{Name: "data"}}

// a fake plugin and a mounter in memory are there for everybody's tests, and
// keep the contract that others are held to.
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
