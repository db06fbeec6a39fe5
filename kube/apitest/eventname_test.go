package apitest_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	typedv1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/record"

	"github.com/kubeparts/kubeparts/kube/apitest"
)

func TestEventsOfOneInstantAreAllStored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := new(apitest.Server)
		broadcaster := record.NewBroadcaster(record.WithContext(t.Context()))
		broadcaster.StartRecordingToSink(&typedv1.EventSinkImpl{Interface: connect(t, api.RESTConfig()).CoreV1().Events("")})
		scheme := runtime.NewScheme()
		require.NoError(t, v1.AddToScheme(scheme))
		recorder := broadcaster.NewRecorder(scheme, v1.EventSource{Component: "test"})
		pod := newPod("web", "n1")
		for _, of := range []string{"a", "b", "c", "a"} {
			recorder.Eventf(pod, v1.EventTypeNormal, "SuccessfulCreate", "Created pod: %s", of)
		}
		time.Sleep(time.Second)
		counts := map[string]int32{}
		for _, o := range api.List("events") {
			counts[o.(*v1.Event).Message] = o.(*v1.Event).Count
		}
		assert.Equal(t, map[string]int32{"Created pod: a": 2, "Created pod: b": 1, "Created pod: c": 1}, counts)
		broadcaster.Shutdown()
	})
}

func TestARepeatedEventExists(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := new(apitest.Server)
		client := connect(t, api.RESTConfig())
		event := func(message string) *v1.Event {
			return &v1.Event{ObjectMeta: metav1.ObjectMeta{Name: "web.1", Namespace: "prod"}, Message: message}
		}
		create := func(message string) (string, error) {
			e, err := client.CoreV1().Events("prod").Create(t.Context(), event(message), metav1.CreateOptions{})
			return e.Name, err
		}
		for i, message := range []string{"a", "b"} {
			name, err := create(message)
			require.NoError(t, err)
			assert.Equal(t, []string{"web.1", "web.1-2"}[i], name)
		}
		for _, message := range []string{"a", "b"} {
			_, err := create(message)
			assert.True(t, apierrors.IsAlreadyExists(err), "%s: %v", message, err)
		}
		e, err := client.EventsV1().Events("prod").Create(t.Context(), &eventsv1.Event{
			ObjectMeta: metav1.ObjectMeta{Name: "web.1", Namespace: "prod"}, Note: "c", Action: "Test", Reason: "Test", Type: "Normal",
			EventTime: metav1.NowMicro(), ReportingController: "test", ReportingInstance: "test",
		}, metav1.CreateOptions{})
		require.NoError(t, err)
		assert.Equal(t, "web.1-3", e.Name)

		time.Sleep(time.Nanosecond) // the name contains another time
		for i := range 2 {
			_, err := create(fmt.Sprint("later ", i))
			assert.True(t, apierrors.IsAlreadyExists(err), "%v", err)
		}
	})
}
