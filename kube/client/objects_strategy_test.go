package client_test

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeparts/kubeparts/kube/apitest"
	"github.com/kubeparts/kubeparts/kube/client"
)

func TestTheStrategyCache(t *testing.T) { // oc-7
	synctest.Test(t, func(t *testing.T) {
		var ttl time.Duration
		s := newShelf(t, client.ObjectsConfig{Strategy: client.Cache, TTL: func() time.Duration { return ttl }})
		s.api.Put(newSecret("db", "one"))
		s.Register(userOf("a", "db"))
		assert.Equal(t, "one", value(t, s, "db"))
		s.api.Put(newSecret("db", "two"))
		pass(59 * time.Second)
		assert.Equal(t, "one", value(t, s, "db"))
		assert.Len(t, s.api.Calls("secrets"), 1)
		pass(time.Second)
		assert.Equal(t, "two", value(t, s, "db"))

		s.api.Put(newSecret("db", "three"))
		s.Register(userOf("a", "db"))
		assert.Equal(t, "two", value(t, s, "db"), "it was registered before")
		s.Register(userOf("b", "db"))
		assert.Equal(t, "three", value(t, s, "db"), "it is read again for a new pod")

		ttl = 10 * time.Minute
		s.api.Put(newSecret("db", "four"))
		pass(9 * time.Minute)
		assert.Equal(t, "three", value(t, s, "db"))
		pass(time.Minute)
		s.faults.set(about("get", apitest.Fault{Code: 500, Message: "boom"}))
		_, err := s.Secret(t.Context(), "prod", "db")
		require.EqualError(t, err, "client: read secret prod/db: boom", "no stale object is returned")
		s.faults.set(nil)
		assert.Equal(t, "four", value(t, s, "db"))

		s.api.Remove("secrets", "prod", "db")
		pass(10 * time.Minute)
		_, err = s.Secret(t.Context(), "prod", "db")
		require.True(t, apierrors.IsNotFound(err))
		assert.Zero(t, watchesOf(s.api))

		// Many readers at a time ask once.
		s.api.Put(newSecret("hot", "x"))
		s.faults.set(about("get", apitest.Fault{Latency: time.Second}))
		s.api.Forget()
		var wg sync.WaitGroup
		for range 50 {
			wg.Go(func() { assert.Equal(t, "x", value(t, s, "hot")) })
		}
		wg.Wait()
		assert.Len(t, s.api.Calls("secrets"), 1)
	})
}

func TestTheStrategyGet(t *testing.T) { // oc-1
	synctest.Test(t, func(t *testing.T) {
		s := newShelf(t, client.ObjectsConfig{Strategy: client.Get})
		s.api.Put(newSecret("db", "one"))
		s.Register(userOf("a", "db"))
		assert.Equal(t, "one", value(t, s, "db"))
		s.api.Put(newSecret("db", "two"))
		assert.Equal(t, "two", value(t, s, "db"))
		assert.Len(t, s.api.Calls("get", "secrets"), 2)
		assert.Zero(t, watchesOf(s.api))
		_, err := s.ConfigMap(t.Context(), "prod", "none")
		require.True(t, apierrors.IsNotFound(err))
	})
}

func TestHowLongANodeMayCache(t *testing.T) { // oc-7
	node := func(ttl string) *v1.Node {
		return &v1.Node{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"node.alpha.kubernetes.io/ttl": ttl}}}
	}
	assert.Equal(t, 300*time.Second, client.TTLOf(node("300")))
	assert.Zero(t, client.TTLOf(node("0")))
	assert.Zero(t, client.TTLOf(node("-5")))
	assert.Zero(t, client.TTLOf(node("soon")))
	assert.Zero(t, client.TTLOf(nil))
}

func TestStrategiesHaveNames(t *testing.T) {
	for _, s := range []client.Strategy{client.Watch, client.Cache, client.Get} {
		got, err := client.ParseStrategy(s.String())
		require.NoError(t, err)
		assert.Equal(t, s, got)
	}
	_, err := client.ParseStrategy("watch")
	require.EqualError(t, err, `client: unknown strategy "watch": want Watch, Cache or Get`)
	assert.Equal(t, "Strategy(7)", client.Strategy(7).String())
}
