package certs

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	typed "k8s.io/client-go/kubernetes/typed/certificates/v1"
	clienttesting "k8s.io/client-go/testing"
)

// A waited request changes while waitForCertificate waits for it. The test ends its watches.
type waited struct {
	t       *testing.T
	client  *fake.Clientset
	watches []*watch.FakeWatcher
}

func newWaited(t *testing.T) *waited {
	w := &waited{t: t, client: fake.NewClientset()}
	w.client.PrependWatchReactor("certificatesigningrequests", func(clienttesting.Action) (bool, watch.Interface, error) {
		w.watches = append(w.watches, watch.NewFakeWithOptions(watch.FakeOptions{ChannelSize: 10}))
		return true, w.watches[len(w.watches)-1], nil
	})
	_, err := w.requests().Create(t.Context(), w.request(certificatesv1.CertificateSigningRequestStatus{}), metav1.CreateOptions{})
	require.NoError(t, err)
	return w
}

func (w *waited) requests() typed.CertificateSigningRequestInterface {
	return w.client.CertificatesV1().CertificateSigningRequests()
}

func (w *waited) request(status certificatesv1.CertificateSigningRequestStatus) *certificatesv1.CertificateSigningRequest {
	return &certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{Name: "r", UID: "u"}, Status: status}
}

// wait calls waitForCertificate, and change meanwhile.
func (w *waited) wait(change func()) (cert []byte, err error) {
	ctx, cancel := context.WithTimeout(w.t.Context(), time.Hour)
	defer cancel()
	done := make(chan struct{})
	go func() {
		defer close(done)
		cert, err = waitForCertificate(ctx, w.requests(), "r", "u")
	}()
	synctest.Wait()
	require.Len(w.t, w.watches, 1)
	change()
	<-done
	return cert, err
}

func TestACertificateIsAwaited(t *testing.T) {
	approved := []certificatesv1.CertificateSigningRequestCondition{{Type: certificatesv1.CertificateApproved}}
	issued := certificatesv1.CertificateSigningRequestStatus{Conditions: approved, Certificate: []byte("cert")}
	update := func(w *waited, change func(*certificatesv1.CertificateSigningRequest)) {
		r := w.request(issued)
		change(r)
		_, err := w.requests().Update(t.Context(), r, metav1.UpdateOptions{})
		require.NoError(t, err)
	}
	for name, c := range map[string]struct {
		change func(*waited)
		err    string
	}{
		"approved, then issued": {func(w *waited) {
			w.watches[0].Modify(w.request(certificatesv1.CertificateSigningRequestStatus{Conditions: approved}))
			time.Sleep(time.Minute)
			w.watches[0].Modify(w.request(issued))
		}, ""},
		"issued without an approval": {func(w *waited) {
			w.watches[0].Modify(w.request(certificatesv1.CertificateSigningRequestStatus{Certificate: []byte("not yet")}))
			w.watches[0].Modify(w.request(issued))
		}, ""},
		"another request": {func(w *waited) {
			w.watches[0].Modify(&certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{Name: "other", UID: "v"}, Status: issued})
			w.watches[0].Modify(w.request(issued))
		}, ""},
		"issued after the end of a watch": {func(w *waited) {
			w.watches[0].Stop()
			update(w, func(*certificatesv1.CertificateSigningRequest) {})
		}, ""},
		"issued after an error of a watch": {func(w *waited) {
			w.watches[0].Action(watch.Error, &metav1.Status{Message: "too old"})
			update(w, func(*certificatesv1.CertificateSigningRequest) {})
		}, ""},
		"issued after a failed read": {func(w *waited) {
			w.client.PrependReactor("get", "*", func(clienttesting.Action) (bool, runtime.Object, error) {
				return time.Since(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)) < time.Minute, nil, context.DeadlineExceeded
			})
			update(w, func(*certificatesv1.CertificateSigningRequest) {})
			w.watches[0].Stop()
		}, ""},
		"failed": {func(w *waited) {
			w.watches[0].Modify(w.request(certificatesv1.CertificateSigningRequestStatus{
				Conditions: []certificatesv1.CertificateSigningRequestCondition{{Type: certificatesv1.CertificateFailed, Reason: "Signer", Message: "no key"}}}))
		}, "certs: request r was denied: Signer: no key"},
		"replaced": {func(w *waited) {
			update(w, func(r *certificatesv1.CertificateSigningRequest) { r.UID = "v" })
			w.watches[0].Stop()
		}, "replaced by one with the UID v"},
		"deleted": {func(w *waited) {
			require.NoError(t, w.requests().Delete(t.Context(), "r", metav1.DeleteOptions{}))
			w.watches[0].Delete(w.request(issued))
		}, "not found"},
		"never issued": {func(w *waited) { time.Sleep(2 * time.Hour) }, "context deadline exceeded"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWaited(t)
				cert, err := w.wait(func() { c.change(w) })
				if c.err != "" {
					require.ErrorContains(t, err, c.err)
					assert.Nil(t, cert)
					return
				}
				require.NoError(t, err)
				assert.Equal(t, "cert", string(cert))
			})
		})
	}
}
