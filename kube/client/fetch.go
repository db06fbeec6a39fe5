package client

import (
	"context"
	"fmt"

	authenticationv1 "k8s.io/api/authentication/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Token requests a token of a service account. Tokens are not cached.
func (o *Objects) Token(ctx context.Context, namespace, serviceAccount string, request *authenticationv1.TokenRequest) (*authenticationv1.TokenRequest, error) {
	response, err := o.cfg.Client.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, serviceAccount, request, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("client: token of service account %s/%s: %w", namespace, serviceAccount, err)
	}
	return response, nil
}

// PersistentVolumeClaim reads a claim from the API server.
func (o *Objects) PersistentVolumeClaim(ctx context.Context, namespace, name string) (*v1.PersistentVolumeClaim, error) {
	claim, err := o.cfg.Client.CoreV1().PersistentVolumeClaims(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("client: read persistent volume claim %s/%s: %w", namespace, name, err)
	}
	return withoutManagedFields(claim), nil
}

// PersistentVolume reads a volume from the API server.
func (o *Objects) PersistentVolume(ctx context.Context, name string) (*v1.PersistentVolume, error) {
	volume, err := o.cfg.Client.CoreV1().PersistentVolumes().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("client: read persistent volume %s: %w", name, err)
	}
	return withoutManagedFields(volume), nil
}
