package volume_test

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/volume"
)

// vol-1, vol-68: a persistent volume specifies the group of its files.
func TestGroupsOfPersistentVolumes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gid := func(value string) func(*v1.PersistentVolumeClaim, *v1.PersistentVolume) {
			return func(_ *v1.PersistentVolumeClaim, pv *v1.PersistentVolume) {
				pv.Annotations = map[string]string{"pv.beta.kubernetes.io/gid": value}
			}
		}
		objects := new(claims).bound("a", gid("700")).bound("b", gid("600")).bound("c", gid("x")).bound("d").bound("e", gid("700")).bound("f", gid("0")).bound("g", gid("-5"))
		n := start(t, nil, func(c *volume.Config) { c.PersistentVolumes.Claims = objects })
		p := claimPod("p", "a", "b", "c", "d", "e", "f", "g")
		assert.Empty(t, n.Groups(p))
		_, err := n.Mount(t.Context(), p)
		require.NoError(t, err)
		assert.Equal(t, []int64{600, 700}, n.Groups(p), "never root's")
	})
}
