// Package server answers what is asked of a node over HTTP: the kubelet's API.
package server
