package client

import (
	"context"
	"fmt"
	"slices"

	certificatesv1 "k8s.io/api/certificates/v1"
	certificatesv1beta1 "k8s.io/api/certificates/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
)

// ClusterTrustBundle reads the certificates, in PEM, of the bundle with that
// name (vol-57).
func (o *Objects) ClusterTrustBundle(ctx context.Context, name string) (pem string, err error) {
	bundle, err := o.cfg.Client.CertificatesV1().ClusterTrustBundles().Get(ctx, name, metav1.GetOptions{})
	if err == nil {
		return bundle.Spec.TrustBundle, nil
	}
	if notServed(err, name) {
		older, betaErr := o.cfg.Client.CertificatesV1beta1().ClusterTrustBundles().Get(ctx, name, metav1.GetOptions{})
		if betaErr == nil {
			return older.Spec.TrustBundle, nil
		}
		err = betaErr
	}
	return "", fmt.Errorf("client: read cluster trust bundle %s: %w", name, err)
}

// ClusterTrustBundles reads those of the signer that match the selector. That
// there are none is no error.
func (o *Objects) ClusterTrustBundles(ctx context.Context, signer string, selector labels.Selector) (pems []string, err error) {
	opts := metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("spec.signerName", signer).String(),
		LabelSelector: selector.String(),
	}
	list, err := o.cfg.Client.CertificatesV1().ClusterTrustBundles().List(ctx, opts)
	if err == nil {
		slices.SortFunc(list.Items, func(a, b certificatesv1.ClusterTrustBundle) int { return compareNames(&a, &b) })
		for i := range list.Items {
			pems = append(pems, list.Items[i].Spec.TrustBundle)
		}
		return pems, nil
	}
	if notServed(err, "") {
		older, betaErr := o.cfg.Client.CertificatesV1beta1().ClusterTrustBundles().List(ctx, opts)
		if betaErr == nil {
			slices.SortFunc(older.Items, func(a, b certificatesv1beta1.ClusterTrustBundle) int { return compareNames(&a, &b) })
			for i := range older.Items {
				pems = append(pems, older.Items[i].Spec.TrustBundle)
			}
			return pems, nil
		}
		err = betaErr
	}
	return nil, fmt.Errorf("client: list cluster trust bundles of signer %s: %w", signer, err)
}

// notServed reports whether the server does not have that version of the API,
// rather than that object of it.
func notServed(err error, name string) bool {
	if !apierrors.IsNotFound(err) {
		return false
	}
	status, ok := err.(apierrors.APIStatus)
	return ok && (status.Status().Details == nil || status.Status().Details.Name != name || name == "")
}
