package podspec_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kubeparts/kubeparts/cm/cgroups"
	"github.com/kubeparts/kubeparts/internal/podspec"
)

func TestCPUOfTheKernel(t *testing.T) {
	for _, tc := range []struct {
		cpu           string
		shares, quota int64
	}{
		{"-1", 2, 0},
		{"-9E", 2, 0},
		{"0", 2, 0},
		{"2m", 2, 1000},
		{"10m", 10, 1000},
		{"11m", 11, 1100},
		{"500m", 512, 50_000},
		{"1.5", 1536, 150_000},
		{"256", 262144, 25_600_000},
		{"1000", 262144, 100_000_000},
		{"9E", 262144, 109_951_162_777_600}, // not the result of an overflow
	} {
		milli := podspec.MilliCPU(resource.MustParse(tc.cpu))
		assert.Equal(t, tc.shares, cgroups.Shares(milli), "shares of %s", tc.cpu)
		assert.Equal(t, tc.quota, cgroups.Quota(milli, cgroups.DefaultPeriod), "quota of %s", tc.cpu)
	}
}
