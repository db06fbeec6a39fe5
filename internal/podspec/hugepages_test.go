package podspec_test

import (
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/internal/podspec"
)

func TestResourceNamesAndSizes(t *testing.T) {
	assert.Equal(t, v1.ResourceName("hugepages-2Mi"), podspec.HugePagesName(2<<20))
	assert.Equal(t, int64(1<<30), podspec.HugePagesSize("hugepages-1Gi"))
	for _, name := range []v1.ResourceName{"memory", "hugepages-", "hugepages-many"} {
		assert.Zero(t, podspec.HugePagesSize(name), name)
	}
	assert.True(t, podspec.IsHugePages("hugepages-many"))
	assert.False(t, podspec.IsHugePages("memory"))
}

func TestHugePagesOfSysfs(t *testing.T) {
	root := fstest.MapFS{
		podspec.HugePagesDir + "/hugepages-2048kB/nr_hugepages": {Data: []byte("512\n")},
		podspec.HugePagesDir + "/hugepages-64kB/free_hugepages": {Data: []byte("1\n")},
		podspec.HugePagesDir + "/other/nr_hugepages":            {Data: []byte("x\n")},
	}
	pages, err := podspec.ReadHugePages(root, podspec.HugePagesDir)
	require.NoError(t, err)
	assert.Equal(t, map[int64]int64{2 << 20: 512, 64 << 10: 0}, pages)
	pages, err = podspec.ReadHugePages(root, "elsewhere")
	require.NoError(t, err)
	assert.Nil(t, pages)
	root[podspec.HugePagesDir+"/hugepages-2048kB/nr_hugepages"].Data = []byte("many")
	_, err = podspec.ReadHugePages(root, podspec.HugePagesDir)
	assert.ErrorContains(t, err, "hugepages-2048kB/nr_hugepages")
}
