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

// ClusterTrustBundle returns the certificates, in PEM, of the bundle with a name.
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

// ClusterTrustBundles returns the certificates of the bundles of a signer that match the
// selector. No match is not an error.
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

// notServed reports whether the server does not serve this version of the API, as opposed
// to the object not being found.
func notServed(err error, name string) bool {
	if !apierrors.IsNotFound(err) {
		return false
	}
	status, ok := err.(apierrors.APIStatus)
	return ok && (status.Status().Details == nil || status.Status().Details.Name != name || name == "")
}
