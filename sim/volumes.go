package sim

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
	"k8s.io/mount-utils"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/volume"
)

// needsDir reports whether agents write checkpoints for pods of this schedule, or of them.
func (s Schedule) needsDir() bool { return s.hasVolumes() || s.hasCPU() || s.hasCheckpoints() }

func (s Schedule) hasVolumes() bool {
	return slices.ContainsFunc(s, func(step Step) bool { return step.Shape.Volumes > 0 })
}

// memoryDir creates a directory for checkpoints, in memory if the system has /dev/shm:
// runs that wait for a disk are much slower.
func memoryDir() (string, error) {
	if dir, err := os.MkdirTemp("/dev/shm", "sim"); err == nil {
		return dir, nil
	}
	return os.MkdirTemp("", "sim")
}

// newVolumes returns the volume.Manager of an agent; nil if no pod has volumes.
func (r *run) newVolumes(a *Agent) (*volume.Manager, error) {
	if !r.cfg.Schedule.hasVolumes() {
		return nil, nil
	}
	m, err := volume.New(volume.Config{
		RootDir: filepath.Join(r.dir, "volumes"), Plugins: []volume.Plugin{volumePlugin{a}}, Mounter: mount.NewFakeMounter(nil),
		StatsPeriod: -time.Second,
	})
	if err != nil {
		return nil, fmt.Errorf("sim: %w", err)
	}
	return m, nil
}

// A volumePlugin sets up the volumes of one agent. Mounts outlive the agent; they are
// recorded in the trace.
type volumePlugin struct{ agent *Agent }

// Name implements volume.Plugin.
func (volumePlugin) Name() string { return "sim.test/volume" }

// CanSupport implements volume.Plugin.
func (volumePlugin) CanSupport(spec *volume.Spec) bool { return spec.Volume != nil }

// SetUp implements volume.Plugin.
func (p volumePlugin) SetUp(ctx context.Context, req volume.Request) (volume.SetUpResult, error) {
	err := p.agent.Call(ctx, Call{Method: setUpCall, UID: req.PodUID, ID: req.Name}, func() error {
		if !p.agent.run.note(Entry{Agent: p.agent.agent, Kind: Mounted, UID: req.PodUID, Volume: req.Name}) {
			return context.Canceled
		}
		return nil
	})
	return volume.SetUpResult{Volume: runtime.Volume{Path: req.Dir()}}, err
}

// TearDown implements volume.Plugin.
func (p volumePlugin) TearDown(ctx context.Context, at volume.Place) error {
	return p.agent.Call(ctx, Call{Method: tearDownCall, UID: at.PodUID, ID: at.Name}, func() error {
		if !p.agent.run.note(Entry{Agent: p.agent.agent, Kind: Unmounted, UID: at.PodUID, Volume: at.Name}) {
			return context.Canceled
		}
		return nil
	})
}

// ConstructSpec implements volume.Plugin. It is not supported: only the checkpoints are
// on disk.
func (volumePlugin) ConstructSpec(volume.Place) (*volume.Spec, error) {
	return nil, errors.ErrUnsupported
}

// Stats implements volume.Plugin.
func (volumePlugin) Stats(context.Context, volume.Place, runtime.Volume) (statsapi.FsStats, error) {
	return statsapi.FsStats{}, errors.ErrUnsupported
}
