package csi

import (
	"testing"

	csipb "github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/stretchr/testify/assert"
	v1 "k8s.io/api/core/v1"
)

func TestCategoriesOfHealth(t *testing.T) {
	for from, want := range map[csipb.VolumeHealthErrorType]v1.VolumeHealthStatusType{
		csipb.VolumeHealthErrorType_INACCESSIBLE: v1.VolumeHealthInaccessible,
		csipb.VolumeHealthErrorType_DATA_LOSS:    v1.VolumeHealthDataLoss,
		csipb.VolumeHealthErrorType_DEGRADED:     v1.VolumeHealthDegraded,
	} {
		got := healthConditions([]*csipb.VolumeHealth_VolumeHealthEntry{{Status: 77, Reason: "New"}, {Status: from, Reason: "R", Message: "m"}, nil})
		assert.Equal(t, []v1.VolumeHealthCondition{{Status: want, Reason: "R", Message: "m"}}, got)
	}
}
