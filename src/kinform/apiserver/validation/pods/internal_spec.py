"""A pod's spec in Go's internal form, as messages about forbidden changes print it.

The server's own form has other names than JSON has, shows every field, and has the fields in an
order of its own. The table below was read off its messages.
"""

from __future__ import annotations

import functools
import json
import re
from typing import Final, NamedTuple

from kinform.apiserver.scheme import line_diff
from kinform.apiserver.serializer.json_values import Json, JsonValue, as_dict

__all__ = ["difference", "shown_as", "shown_spec", "shown_template"]

# A word is a field. What follows a colon is what it holds: s text, b a boolean, i a number (shown
# as "", false and 0 if missing); =T another type, *T one that may be missing, [T a list of them.
# Everything else is shown as it is, or null.
_CONTAINER: Final = (
    "Name:s Image:s Command Args WorkingDir:s Ports:[Port EnvFrom:[EnvFrom Env:[Env "
    "Resources:=Resources ResizePolicy:[ResizePolicy RestartPolicy RestartPolicyRules "
    "VolumeMounts:[Mount VolumeDevices:[Device LivenessProbe:*Probe ReadinessProbe:*Probe "
    "StartupProbe:*Probe Lifecycle:*Lifecycle TerminationMessagePath:s TerminationMessagePolicy:s "
    "ImagePullPolicy:s SecurityContext:*Security Stdin:b StdinOnce:b TTY:b"
)
_TYPES: Final = {
    "Pod": "Volumes:[Volume InitContainers:[Container Containers:[Container "
    "EphemeralContainers:[Ephemeral RestartPolicy:s TerminationGracePeriodSeconds "
    "ActiveDeadlineSeconds DNSPolicy:s NodeSelector ServiceAccountName:s "
    "AutomountServiceAccountToken NodeName:s SecurityContext:=PodSecurity "
    "ImagePullSecrets:[Name Hostname:s Subdomain:s SetHostnameAsFQDN Affinity:*Affinity "
    "SchedulerName:s Tolerations:[Toleration HostAliases:[Alias PriorityClassName:s Priority "
    "PreemptionPolicy DNSConfig:*DNS ReadinessGates:[Gate RuntimeClassName Overhead "
    "EnableServiceLinks TopologySpreadConstraints:[Spread OS:*Name SchedulingGates:[Name "
    "ResourceClaims:[Claim Resources:*Resources HostnameOverride SchedulingGroup",
    "Container": _CONTAINER,
    "Ephemeral": f"{_CONTAINER} TargetContainerName:s",
    "Port": "Name:s HostPort:i ContainerPort:i Protocol:s HostIP:s",
    "EnvFrom": "Prefix:s ConfigMapRef:*Reference SecretRef:*Reference",
    "Reference": "Name:s Optional",
    "Env": "Name:s Value:s ValueFrom:*EnvSource",
    "EnvSource": "FieldRef:*Field ResourceFieldRef:*Resource ConfigMapKeyRef:*Key "
    "SecretKeyRef:*Key FileKeyRef",
    "Field": "APIVersion:s FieldPath:s",
    "Resource": "ContainerName:s Resource:s Divisor",
    "Key": "Name:s Key:s Optional",
    "Resources": "Limits Requests Claims",
    "ResizePolicy": "ResourceName:s RestartPolicy:s",
    "Mount": "Name:s ReadOnly:b RecursiveReadOnly MountPath:s SubPath:s MountPropagation "
    "SubPathExpr:s",
    "Device": "Name:s DevicePath:s",
    "Probe": "Exec:*Exec HTTPGet:*HTTP TCPSocket:*TCP GRPC:*GRPC InitialDelaySeconds:i "
    "TimeoutSeconds:i PeriodSeconds:i SuccessThreshold:i FailureThreshold:i "
    "TerminationGracePeriodSeconds",
    "Exec": "Command",
    "HTTP": "Path:s Port Host:s Scheme:s HTTPHeaders:[Header",
    "Header": "Name:s Value:s",
    "TCP": "Port Host:s",
    "GRPC": "Port:i Service",
    "Lifecycle": "PostStart:*Handler PreStop:*Handler StopSignal",
    "Handler": "Exec:*Exec HTTPGet:*HTTP TCPSocket:*TCP Sleep:*Sleep",
    "Sleep": "Seconds:i",
    "Security": "Capabilities:*Capabilities Privileged SELinuxOptions:*SELinux "
    "WindowsOptions:*Windows RunAsUser RunAsGroup RunAsNonRoot ReadOnlyRootFilesystem "
    "AllowPrivilegeEscalation ProcMount SeccompProfile:*Profile AppArmorProfile:*Profile",
    "PodSecurity": "HostNetwork:b HostPID:b HostIPC:b ShareProcessNamespace HostUsers "
    "SELinuxOptions:*SELinux WindowsOptions:*Windows RunAsUser RunAsGroup RunAsNonRoot "
    "SupplementalGroups SupplementalGroupsPolicy FSGroup FSGroupChangePolicy Sysctls:[Header "
    "SeccompProfile:*Profile AppArmorProfile:*Profile SELinuxChangePolicy",
    "Capabilities": "Add Drop",
    "SELinux": "User:s Role:s Type:s Level:s",
    "Windows": "GMSACredentialSpecName GMSACredentialSpec RunAsUserName HostProcess",
    "Profile": "Type:s LocalhostProfile",
    "Name": "Name:s",
    "Toleration": "Key:s Operator:s Value:s Effect:s TolerationSeconds",
    "Alias": "IP:s Hostnames",
    "DNS": "Nameservers Searches Options:[Option",
    "Option": "Name:s Value",
    "Gate": "ConditionType:s",
    "Claim": "Name:s ResourceClaimName ResourceClaimTemplateName",
    "Spread": "MaxSkew:i TopologyKey:s WhenUnsatisfiable:s LabelSelector MinDomains "
    "NodeAffinityPolicy NodeTaintsPolicy MatchLabelKeys",
    "Affinity": "NodeAffinity:*NodeAffinity PodAffinity:*PodAffinity PodAntiAffinity:*PodAffinity",
    "NodeAffinity": "RequiredDuringSchedulingIgnoredDuringExecution:*NodeTerms "
    "PreferredDuringSchedulingIgnoredDuringExecution:[NodeWish",
    "NodeTerms": "NodeSelectorTerms:[NodeTerm",
    "NodeTerm": "MatchExpressions:[Expression MatchFields:[Expression",
    "Expression": "Key:s Operator:s Values",
    "NodeWish": "Weight:i Preference:=NodeTerm",
    "PodAffinity": "RequiredDuringSchedulingIgnoredDuringExecution:[PodTerm "
    "PreferredDuringSchedulingIgnoredDuringExecution:[PodWish",
    "PodTerm": "LabelSelector Namespaces TopologyKey:s NamespaceSelector MatchLabelKeys "
    "MismatchLabelKeys",
    "PodWish": "Weight:i PodAffinityTerm:=PodTerm",
    "Volume": "Name:s HostPath:*HostPath EmptyDir:*EmptyDir GCEPersistentDisk "
    "AWSElasticBlockStore GitRepo Secret:*Secret NFS:*NFS ISCSI Glusterfs "
    "PersistentVolumeClaim:*VolumeClaim RBD Quobyte FlexVolume Cinder CephFS Flocker "
    "DownwardAPI:*Downward FC AzureFile ConfigMap:*ConfigMap VsphereVolume AzureDisk "
    "PhotonPersistentDisk Projected:*Projected PortworxVolume ScaleIO StorageOS CSI:*CSI "
    "Ephemeral:*EphemeralVolume Image:*ImageVolume",
    "HostPath": "Path:s Type",
    "EmptyDir": "Medium:s SizeLimit",
    "Secret": "SecretName:s Items:[Item DefaultMode Optional",
    "ConfigMap": "Name:s Items:[Item DefaultMode Optional",
    "Item": "Key:s Path:s Mode",
    "NFS": "Server:s Path:s ReadOnly:b",
    "VolumeClaim": "ClaimName:s ReadOnly:b",
    "Downward": "Items:[DownwardItem DefaultMode",
    "DownwardItem": "Path:s FieldRef:*Field ResourceFieldRef:*Resource Mode",
    "Projected": "Sources:[Source DefaultMode",
    "Source": "Secret:*SourceFiles DownwardAPI:*SourceDownward ConfigMap:*SourceFiles "
    "ServiceAccountToken:*Token ClusterTrustBundle PodCertificate",
    "SourceFiles": "Name:s Items:[Item Optional",
    "SourceDownward": "Items:[DownwardItem",
    "Token": "Audience:s ExpirationSeconds:i Path:s",
    "CSI": "Driver:s ReadOnly FSType VolumeAttributes NodePublishSecretRef:*Name",
    "EphemeralVolume": "VolumeClaimTemplate:*ClaimTemplate",
    "ClaimTemplate": "Spec:=ClaimSpec",
    "ClaimSpec": "AccessModes Selector Resources:=ClaimResources VolumeName:s StorageClassName "
    "VolumeMode DataSource DataSourceRef VolumeAttributesClassName",
    "ClaimResources": "Limits Requests",
    "ImageVolume": "Reference:s PullPolicy:s",
}
_ZEROS: Final[dict[str, JsonValue]] = {"s": "", "b": False, "i": 0}
_IRREGULAR: Final = {"CephFS": "cephfs", "StorageOS": "storageos"}
_ON_HOST: Final = ("hostNetwork", "hostPID", "hostIPC", "shareProcessNamespace", "hostUsers")


class _Field(NamedTuple):
    name: str
    key: str
    holds: str
    of: str


@functools.cache
def _fields(kind: str) -> tuple[_Field, ...]:
    fields: list[_Field] = []
    for word in _TYPES[kind].split():
        name, _, holds = word.partition(":")
        fields.append(_Field(name, _key(name), holds[:1], holds[1:]))
    return tuple(fields)


def _key(name: str) -> str:
    """Return the name in JSON: ``httpGet`` for ``HTTPGet``."""
    if name in _IRREGULAR:
        return _IRREGULAR[name]
    capitals = re.match("[A-Z]+", name)
    count = len(capitals[0]) if capitals else 0
    count = count if count in {1, len(name)} else count - 1
    return name[:count].lower() + name[count:]


def shown_as(kind: str, value: Json) -> Json:
    """Return a part of a spec as messages show it; ``kind`` is one of the table's."""
    return {field.name: _shown_field(field, value.get(field.key)) for field in _fields(kind)}


def _shown_field(field: _Field, value: JsonValue) -> JsonValue:
    if value is None:
        return shown_as(field.of, {}) if field.holds == "=" else _ZEROS.get(field.holds)
    if field.holds in {"*", "="}:
        return shown_as(field.of, value)
    if field.holds == "[":
        return [shown_as(field.of, one) for one in value]
    return value


def shown_spec(spec: Json) -> Json:
    """Return a pod's spec as messages show it."""
    context = {**as_dict(spec.get("securityContext"))}
    context.update({key: spec[key] for key in _ON_HOST if key in spec})
    return shown_as("Pod", {**spec, "securityContext": context})


def shown_template(template: Json) -> Json:
    """Return a template as messages show it."""
    metadata = {key: value for key, value in as_dict(template.get("metadata")).items() if value}
    if "labels" in metadata:
        metadata["labels"] = dict(sorted(metadata["labels"].items()))
    return {**metadata, "Spec": shown_spec(as_dict(template.get("spec")))}


def difference(old: Json, new: Json) -> str:
    """Return how two specs differ, line by line."""
    before, after = (
        _escaped(json.dumps(shown_spec(spec), indent=1, ensure_ascii=False)) for spec in (old, new)
    )
    lines = (text.splitlines(keepends=True) for text in (before, after))
    return "".join(line_diff.unified(*lines, end="\n"))


def _escaped(text: str) -> str:
    """Return JSON that is safe in a page, as the server writes it everywhere."""
    for one in "<>&":
        text = text.replace(one, f"\\u{ord(one):04x}")
    return text
