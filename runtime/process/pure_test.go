package process

import (
	"encoding/json"
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

func TestPodAddressesAreLoopbackAndDiffer(t *testing.T) {
	used := map[string]bool{}
	for range 2000 {
		ip := podIP(newID(), "linux", used)
		addr := netip.MustParseAddr(ip)
		require.True(t, addr.IsLoopback())
		require.NotEqual(t, byte(0), addr.As4()[1], "127.0.0.0/16 is the host's")
		require.False(t, used[ip])
		used[ip] = true
	}
	same := podIP("a", "linux", nil)
	assert.NotEqual(t, same, podIP("a", "linux", map[string]bool{same: true}))
	assert.Equal(t, "127.0.0.1", podIP("a", "darwin", nil))
}

func TestCredentials(t *testing.T) {
	root := account{}
	me := account{uid: 4000001, gid: 4000002, groups: []int{4000003}}
	n := func(v int64) *runtimeapi.Int64Value { return &runtimeapi.Int64Value{Value: v} }
	type sc = runtimeapi.LinuxContainerSecurityContext
	for name, tc := range map[string]struct {
		asks *sc
		me   account
		want *credential
		err  string
	}{
		"nothing":                      {nil, me, nil, ""},
		"nothing, as root":             {&sc{}, root, nil, ""},
		"another user":                 {&sc{RunAsUser: n(4000005)}, root, &credential{UID: 4000005, GID: 4000005}, ""},
		"another user, unprivileged":   {&sc{RunAsUser: n(4000005)}, me, nil, "user 4000005"},
		"oneself":                      {&sc{RunAsUser: n(4000001)}, me, nil, ""},
		"root, unprivileged":           {&sc{RunAsUser: n(0)}, me, nil, "user 0"},
		"another group, unprivileged":  {&sc{RunAsUser: n(4000001), RunAsGroup: n(7)}, me, nil, "group 7"},
		"group and groups":             {&sc{RunAsUser: n(4000005), RunAsGroup: n(7), SupplementalGroups: []int64{8}}, root, &credential{UID: 4000005, GID: 7, Groups: []uint32{8}}, ""},
		"group without user":           {&sc{RunAsGroup: n(7)}, root, nil, "run_as_group without"},
		"own groups, unprivileged":     {&sc{SupplementalGroups: []int64{4000003, 4000002}}, me, nil, ""},
		"foreign groups, unprivileged": {&sc{SupplementalGroups: []int64{9}}, me, nil, "group 9"},
		"groups that cannot be set":    {&sc{RunAsUser: n(0), SupplementalGroups: []int64{8}}, account{fixedGroups: true}, nil, "supplemental groups [8]: the user namespace of the agent denies setgroups"},
		"no groups to be set":          {&sc{RunAsUser: n(0)}, account{fixedGroups: true}, &credential{}, ""},
		"negative":                     {&sc{RunAsUser: n(-1)}, root, nil, "out of range"},
		"too large":                    {&sc{RunAsUser: n(1<<32 - 1)}, root, nil, "out of range"},
	} {
		got, _, err := credentialFor(tc.asks, tc.me)
		if tc.err != "" {
			assert.ErrorContains(t, err, tc.err, name)
			continue
		}
		assert.NoError(t, err, name)
		assert.Equal(t, tc.want, got, name)
	}
}

func TestSelectorsRequireEveryPair(t *testing.T) {
	labels := map[string]string{"a": "1", "b": ""}
	assert.True(t, selects(nil, labels))
	assert.True(t, selects(map[string]string{"a": "1", "b": ""}, labels))
	assert.False(t, selects(map[string]string{"a": "2"}, labels))
	assert.False(t, selects(map[string]string{"c": ""}, labels))
}

func TestForeignRecordsAreRejected(t *testing.T) {
	id := newID()
	for name, data := range map[string]string{
		"empty":         ``,
		"half":          `{"version":1,"id":"` + id,
		"other version": `{"version":2,"id":"` + id + `"}`,
		"no id":         `{"version":1}`,
		"path as id":    `{"version":1,"id":"../../../../etc/passwd"}`,
		"everybody":     `{"version":1,"id":"` + id + `","process":{"pid":-1}}`,
		"init":          `{"version":1,"id":"` + id + `","process":{"pid":1}}`,
	} {
		_, err := decode[processRecord]([]byte(data))
		assert.Error(t, err, name)
	}
	_, err := decode[processRecord]([]byte(`{"version":1,"id":"` + id + `","process":{"pid":2}}`))
	assert.NoError(t, err)
}

func FuzzDecode(f *testing.F) {
	id := strings.Repeat("0a", idLength/2)
	f.Add([]byte(`{"version":1,"id":"` + id + `","sandboxID":"` + id + `","process":{"path":"/bin/sh","args":["sh"],"env":["QT0x"],"dir":"/"}}`))
	f.Add([]byte(`{"version":1,"id":"` + id + `","supervisor":{"pid":7,"start":"x"},"process":{"pid":8,"start":"y"}}`))
	f.Add([]byte(`{"version":1,"id":"` + id + `","ready":true,"labels":{"a":"b"}}`))
	f.Add([]byte(`{"version":1,"id":`))
	f.Fuzz(func(t *testing.T, data []byte) {
		roundTrip[sandboxRecord](t, data)
		roundTrip[containerRecord](t, data)
		roundTrip[processRecord](t, data)
		roundTrip[exitRecord](t, data)
	})
}

// roundTrip checks that an accepted record is safe to use, and unchanged after it is
// marshaled and decoded again.
func roundTrip[T record](t *testing.T, data []byte) {
	rec, err := decode[T](data)
	if err != nil {
		return
	}
	require.True(t, validID(recordID(rec)))
	first, err := json.Marshal(rec)
	require.NoError(t, err)
	again, err := decode[T](first)
	require.NoError(t, err)
	second, err := json.Marshal(again)
	require.NoError(t, err)
	require.Equal(t, string(first), string(second))
}
