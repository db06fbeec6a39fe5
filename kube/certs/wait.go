package certs

import (
	"context"
	"errors"
	"fmt"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	typed "k8s.io/client-go/kubernetes/typed/certificates/v1"

	"github.com/kubeparts/kubeparts/kube/internal/pause"
)

// watchPause is the pause before the next watch of a request when one has ended.
const watchPause = 5 * time.Second

// waitForCertificate returns the certificate of a request when it has been approved and issued. It returns an error
// when that cannot happen any more, a deniedError if the request was denied, and retries other failures until ctx is
// done. csr.WaitForCertificate of client-go would leave a goroutine behind from time to time: the one that waits for
// events may miss the end of its informer.
func waitForCertificate(ctx context.Context, requests typed.CertificateSigningRequestInterface, name string, uid types.UID) ([]byte, error) {
	for {
		cert, err := watchRequest(ctx, requests, name, uid)
		if cert != nil || errors.Is(err, errFinal) {
			return cert, err
		}
		if ended := pause.For(ctx, watchPause); ended != nil {
			return nil, errors.Join(ended, err)
		}
	}
}

// errFinal means that a request will not be issued.
var errFinal = errors.New("it will not be issued")

// watchRequest is waitForCertificate until the watch ends: it then returns neither a certificate nor an error.
func watchRequest(ctx context.Context, requests typed.CertificateSigningRequestInterface, name string, uid types.UID) ([]byte, error) {
	w, err := requests.Watch(ctx, metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", name).String()})
	if err != nil {
		return nil, err
	}
	defer w.Stop()
	request, err := requests.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("%w: %w", errFinal, err)
	} else if err != nil {
		return nil, err
	}
	for {
		if request.Name == name { // a fake does not select
			if cert, err := issued(request, uid); cert != nil || err != nil {
				return cert, err
			}
		}
		select {
		case e := <-w.ResultChan():
			var ok bool
			if request, ok = e.Object.(*certificatesv1.CertificateSigningRequest); !ok || e.Type == watch.Deleted {
				return nil, nil
			}
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// issued returns the certificate of a request, nil if it is pending.
func issued(r *certificatesv1.CertificateSigningRequest, uid types.UID) ([]byte, error) {
	if r.UID != uid {
		return nil, fmt.Errorf("%w: it was replaced by one with the UID %s", errFinal, r.UID)
	}
	approved := false
	for _, c := range r.Status.Conditions {
		switch c.Type {
		case certificatesv1.CertificateDenied, certificatesv1.CertificateFailed:
			return nil, &deniedError{name: r.Name, message: c.Reason + ": " + c.Message}
		case certificatesv1.CertificateApproved:
			approved = true
		}
	}
	if !approved || len(r.Status.Certificate) == 0 {
		return nil, nil
	}
	return r.Status.Certificate, nil
}
