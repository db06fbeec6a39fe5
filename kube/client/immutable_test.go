package client_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/kubeparts/kubeparts/kube/apitest"
	"github.com/kubeparts/kubeparts/kube/client"
)

// An immutable object is changed by deleting and creating it. The pods of a StatefulSet or
// of a Deployment with the strategy Recreate are created soon after their predecessors ended.
func TestARecreatedImmutableObjectIsReadForTheNextPod(t *testing.T) { // oc-5
	for _, strategy := range []client.Strategy{client.Watch, client.Cache} {
		for name, after := range map[string]time.Duration{"at once": 0, "soon": 30 * time.Second, "later": 2 * time.Minute} {
			for _, overlap := range []bool{false, true} {
				t.Run(fmt.Sprint(strategy, " ", name, " ", overlap), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						s := newShelf(t, client.ObjectsConfig{Strategy: strategy})
						secret := newSecret("db", "one")
						secret.Immutable = new(true)
						s.api.Put(secret)
						s.Register(userOf("a", "db"))
						assert.Equal(t, "one", value(t, s, "db"))
						if !overlap {
							s.Unregister("a")
						}
						s.api.Remove("secrets", "prod", "db")
						secret = newSecret("db", "two")
						secret.UID, secret.Immutable = "another", new(true)
						s.api.Put(secret)
						pass(after)
						s.Register(userOf("b", "db"))
						assert.Equal(t, "two", value(t, s, "db"))
						synctest.Wait()
						assert.Zero(t, watchesOf(s.api), "it is immutable again")
					})
				})
			}
		}
	}
}

// Without a pod that refers to it, the object is used for the Grace at most, however often it
// is read.
func TestAnImmutableObjectThatNoPodRefersToIsReadAgain(t *testing.T) {
	for _, strategy := range []client.Strategy{client.Watch, client.Cache} {
		synctest.Test(t, func(t *testing.T) {
			s := newShelf(t, client.ObjectsConfig{Strategy: strategy})
			secret := newSecret("db", "one")
			secret.Immutable = new(true)
			s.api.Put(secret)
			assert.Equal(t, "one", value(t, s, "db"))
			s.api.Remove("secrets", "prod", "db")
			s.api.Put(newSecret("db", "two"))
			for range 5 {
				pass(20 * time.Second)
				value(t, s, "db")
			}
			assert.Equal(t, "two", value(t, s, "db"))
		})
	}
}

// Running pods keep the object while the API server does not respond; a pod that is alone
// does not get one that may be outdated.
func TestAnImmutableObjectIsHeldForItsPodsDuringAnOutage(t *testing.T) {
	for _, strategy := range []client.Strategy{client.Watch, client.Cache} {
		for name, fault := range map[string]apitest.Fault{"refused": {Refuse: true}, "silent": {Hang: true}} {
			if strategy == client.Cache && fault.Hang {
				continue // the caller bounds the request
			}
			t.Run(fmt.Sprint(strategy, " ", name), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := newShelf(t, client.ObjectsConfig{Strategy: strategy})
					secret := newSecret("db", "one")
					secret.Immutable = new(true)
					s.api.Put(secret)
					s.Register(userOf("a", "db"))
					assert.Equal(t, "one", value(t, s, "db"))
					s.faults.set(func(apitest.Call) apitest.Fault { return fault })
					s.Register(userOf("b", "db"))
					assert.Equal(t, "one", value(t, s, "db"))
					s.Unregister("a")
					assert.Equal(t, "one", value(t, s, "db"))
					s.faults.set(nil)
					pass(time.Minute)
					assert.Equal(t, "one", value(t, s, "db"))

					s.Unregister("b")
					s.faults.set(func(apitest.Call) apitest.Fault { return fault })
					s.Register(userOf("c", "db"))
					_, err := s.Secret(t.Context(), "prod", "db")
					assert.Error(t, err)
				})
			})
		}
	}
}
