// Package server answers what is asked of a node over HTTP: the kubelet's API.
//
// # Stability
//
// Growing: more will come; a minor version may change what is here, and
// CHANGELOG.md says how to follow.
package server
