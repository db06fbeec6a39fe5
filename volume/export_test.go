package volume

import (
	"context"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

// Unexported identifiers that tests in package volume_test use.
const (
	NotProcessed  = notProcessed
	WaitingAttach = waitingAttach
	WaitingDevice = waitingDevice
	SettingUp     = settingUp
	BackingOff    = backingOff

	NotMounted = notMounted
	Uncertain  = uncertain
	InPlace    = inPlace
)

var (
	Escape     = escape
	Unescape   = unescape
	UniqueName = uniqueName
)

type HealthReport = healthReport

var NextHealth = nextHealth

func NewHealthReport(name string, err error, conditions ...v1.VolumeHealthCondition) HealthReport {
	return healthReport{name, conditions, err}
}

func (m *Manager) Reconstruct() { m.reconstruct(context.Background()) }

func (m *Manager) Measure(ctx context.Context, uid types.UID) error { return m.measure(ctx, uid) }

func (m *Manager) Stats(uid types.UID) []statsapi.VolumeStats {
	ephemeral, persistent := m.VolumeStats(uid)
	return slices.Concat(ephemeral, persistent)
}
