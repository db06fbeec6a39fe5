package hugepages_test

import (
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/internal/hugepages"
)

func TestResourceNamesAndSizes(t *testing.T) {
	assert.Equal(t, v1.ResourceName("hugepages-2Mi"), hugepages.Name(2<<20))
	assert.Equal(t, int64(1<<30), hugepages.Size("hugepages-1Gi"))
	for _, name := range []v1.ResourceName{"memory", "hugepages-", "hugepages-many"} {
		assert.Zero(t, hugepages.Size(name), name)
	}
	assert.True(t, hugepages.Is("hugepages-many"))
	assert.False(t, hugepages.Is("memory"))
}

func TestHugePagesOfSysfs(t *testing.T) {
	root := fstest.MapFS{
		hugepages.Dir + "/hugepages-2048kB/nr_hugepages": {Data: []byte("512\n")},
		hugepages.Dir + "/hugepages-64kB/free_hugepages": {Data: []byte("1\n")},
		hugepages.Dir + "/other/nr_hugepages":            {Data: []byte("x\n")},
	}
	pages, err := hugepages.Read(root, hugepages.Dir)
	require.NoError(t, err)
	assert.Equal(t, map[int64]int64{2 << 20: 512, 64 << 10: 0}, pages)
	pages, err = hugepages.Read(root, "elsewhere")
	require.NoError(t, err)
	assert.Nil(t, pages)
	root[hugepages.Dir+"/hugepages-2048kB/nr_hugepages"].Data = []byte("many")
	_, err = hugepages.Read(root, hugepages.Dir)
	assert.ErrorContains(t, err, "hugepages-2048kB/nr_hugepages")
}
