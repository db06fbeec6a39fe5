package apiserver

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	registrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
)

// A webhook that cannot be called must not let a write through.
func TestWritesAreRejectedIfThePluginCannotBeMade(t *testing.T) {
	hook := &registrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "hook"}}
	factory := informers.NewSharedInformerFactory(fake.NewClientset(hook), 0)
	wrong := errors.New("no environment")
	d := &deferredMutation[admission.MutationInterface]{deferred[admission.MutationInterface]{
		make: func() (admission.MutationInterface, error) { return nil, wrong },
	}}
	assert.False(t, d.Handles(admission.Create), "there is no configuration")
	observed, err := d.observe(factory.Admissionregistration().V1().MutatingWebhookConfigurations().Informer())
	require.NoError(t, err)
	factory.Start(t.Context().Done())
	select {
	case <-observed.Done():
	case <-time.After(90 * time.Second):
		require.Fail(t, "the configuration is not observed")
	}
	require.True(t, d.Handles(admission.Create))
	assert.ErrorIs(t, d.Admit(t.Context(), nil, nil), wrong)
}
