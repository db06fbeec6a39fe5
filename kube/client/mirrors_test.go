package client_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeparts/kubeparts/kube/apitest"
	"github.com/kubeparts/kubeparts/kube/client"
	"github.com/kubeparts/kubeparts/podworker"
)

var _ podworker.Mirrors = (*client.Mirrors)(nil)

func newMirrors(t *testing.T, api *apitest.Server) *client.Mirrors {
	m, err := client.NewMirrors(client.MirrorsConfig{
		Client: connect(t, api).API, Node: func() (metav1.OwnerReference, bool) { return owner, true },
	})
	require.NoError(t, err)
	return m
}

func asMade(t *testing.T, static *v1.Pod) *v1.Pod {
	mirror, err := podworker.MirrorPod(static, owner)
	require.NoError(t, err)
	return mirror
}

func TestAMirrorIsMade(t *testing.T) { // mir-1, mir-2
	synctest.Test(t, func(t *testing.T) {
		api := new(apitest.Server)
		m := newMirrors(t, api)
		require.NoError(t, m.CreateMirror(t.Context(), asMade(t, newStatic("h1"))))
		mirror := api.Pod("prod", "etcd-node-1")
		require.NotNil(t, mirror)
		assert.Equal(t, "h1", mirror.Annotations[v1.MirrorPodAnnotationKey])
		assert.EqualValues(t, "uid-1", mirror.UID, "the server's, not the static pod's")
		require.Len(t, mirror.OwnerReferences, 1)
		assert.Equal(t, metav1.OwnerReference{APIVersion: "v1", Kind: "Node", Name: nodeName, UID: "node-uid", Controller: new(true)}, mirror.OwnerReferences[0])
		got, ok := m.Node()
		assert.True(t, ok)
		assert.Equal(t, owner, got)

		require.NoError(t, m.CreateMirror(t.Context(), asMade(t, newStatic("h1"))), "it exists already")
		require.NoError(t, m.Rejected("prod", "etcd-node-1"))
		err := m.CreateMirror(t.Context(), asMade(t, newStatic("h2")))
		require.ErrorContains(t, err, "with another manifest, or not as a mirror pod")
	})
}

func TestAMirrorIsDeletedByItsUID(t *testing.T) { // mir-3
	synctest.Test(t, func(t *testing.T) {
		api := new(apitest.Server)
		m := newMirrors(t, api)
		api.Put(mirrorOf(t, newStatic("h1")))
		was := api.Pod("prod", "etcd-node-1")
		another := was.DeepCopy()
		another.UID = "another"
		require.NoError(t, m.DeleteMirror(t.Context(), another), "another one is under its name")
		assert.NotNil(t, api.Pod("prod", "etcd-node-1"))
		require.NoError(t, m.DeleteMirror(t.Context(), was))
		assert.Nil(t, api.Pod("prod", "etcd-node-1"))
		require.NoError(t, m.DeleteMirror(t.Context(), was), "it is gone")

		api.Put(mirrorOf(t, newStatic("h1")))
		api.Fault = func(apitest.Call) apitest.Fault { return apitest.Fault{Code: 500, Message: "boom"} }
		require.EqualError(t, m.DeleteMirror(t.Context(), api.Pod("prod", "etcd-node-1")), "client: delete mirror pod: boom")
	})
}

func TestARejectedMirrorIsNotRetriedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := new(switchboard)
		api := &apitest.Server{Fault: s.fault}
		m := newMirrors(t, api)
		s.set(about("create", apitest.Fault{Code: 403, Message: `namespaces "prod" not found`}))
		for range 36_000 { // an hour of a pod that is synced ten times a second
			require.Error(t, m.CreateMirror(t.Context(), asMade(t, newStatic("h1"))))
			pass(100 * time.Millisecond)
		}
		assert.InDelta(t, 38, len(api.Calls()), 4)
		require.ErrorContains(t, m.Rejected("prod", "etcd-node-1"), `namespaces "prod" not found`)

		require.Error(t, m.CreateMirror(t.Context(), asMade(t, newStatic("h2"))))
		api.Forget()
		s.set(nil)
		pass(2 * time.Second)
		require.NoError(t, m.CreateMirror(t.Context(), asMade(t, newStatic("h2"))), "a new manifest starts over")
		require.NoError(t, m.Rejected("prod", "etcd-node-1"))
	})
}

func TestConfigOfMirrors(t *testing.T) {
	conn := connect(t, new(apitest.Server))
	_, err := client.NewMirrors(client.MirrorsConfig{Client: conn.API})
	require.EqualError(t, err, "client: MirrorsConfig.Node is nil")
	_, err = client.NewMirrors(client.MirrorsConfig{})
	require.EqualError(t, err, "client: MirrorsConfig.Client is nil")
}

func TestAMirrorWhoseRequestFailedIsRetriedAtOnce(t *testing.T) {
	for name, fault := range map[string]apitest.Fault{"partitioned": {Refuse: true}, "unavailable": {Code: 503}, "throttled": {Code: 429}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := new(switchboard)
				api := &apitest.Server{Fault: s.fault}
				m := newMirrors(t, api)
				s.set(about("create", fault))
				for range 60 { // an hour of an API server that is away
					require.Error(t, m.CreateMirror(t.Context(), asMade(t, newStatic("h1"))))
					pass(time.Minute)
				}
				s.set(nil)
				require.NoError(t, m.CreateMirror(t.Context(), asMade(t, newStatic("h1"))))
				assert.NotNil(t, api.Pod("prod", "etcd-node-1"))
			})
		})
	}
}

// A server that starts lacks its namespaces and priority classes for some seconds: the mirror
// pods of its own components must not wait for the next sync of a minute.
func TestAMirrorThatCouldNotBeMadeIsMadeSoon(t *testing.T) {
	for name, fault := range map[string]apitest.Fault{
		"priority class": {Code: 403, Message: "no PriorityClass with name system-node-critical was found"}, "unavailable": {Code: 503},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := new(switchboard)
				api := &apitest.Server{Fault: s.fault}
				var m *client.Mirrors
				syncs := make(chan struct{}, 100)
				m, err := client.NewMirrors(client.MirrorsConfig{
					Client: connect(t, api).API, Node: func() (metav1.OwnerReference, bool) { return owner, true }, Retry: func() { syncs <- struct{}{} },
				})
				require.NoError(t, err)
				s.set(about("create", fault))
				running(t, m.Run)
				running(t, func(ctx context.Context) error {
					for {
						_ = m.CreateMirror(ctx, asMade(t, newStatic("h1")))
						select {
						case <-ctx.Done():
							return nil
						case <-syncs:
						}
					}
				})
				pass(6 * time.Second)
				assert.Nil(t, api.Pod("prod", "etcd-node-1"))
				s.set(nil)
				pass(2 * time.Second)
				assert.NotNil(t, api.Pod("prod", "etcd-node-1"))
				api.Forget()
				pass(time.Hour)
				assert.Empty(t, api.Calls(), "it exists")
			})
		})
	}
}

func TestAMirrorOfARemovedPodIsNotRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := new(switchboard)
		api := &apitest.Server{Fault: s.fault}
		retries := 0
		m, err := client.NewMirrors(client.MirrorsConfig{
			Client: connect(t, api).API, Node: func() (metav1.OwnerReference, bool) { return owner, true }, Retry: func() { retries++ },
		})
		require.NoError(t, err)
		running(t, m.Run)
		s.set(about("create", apitest.Fault{Code: 403}))
		require.Error(t, m.CreateMirror(t.Context(), asMade(t, newStatic("h1"))))
		pass(time.Hour)
		assert.Equal(t, 1, retries)
	})
}
