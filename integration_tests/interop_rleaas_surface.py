"""What the published rleaas 1.1.0 offers: its callables with their parameters, in our own words.

Both sides read this: the tests of our package, and the script that the published one runs.
"""

import ast
from collections.abc import Iterator

SUB_CLIENTS = {
    "Environment": "EnvironmentsClient",
    "Tools": "ToolsClient",
    "TrainingJob": "TrainingClient",
    "Agent": "AgentsClient",
    "Verifier": "VerifierClient",
    "Scenario": "ScenarioClient",
    "ScenarioSuite": "ScenarioSuiteClient",
    "Evaluation": "EvaluationClient",
    "Metrics": "MetricsClient",
    "AuditLog": "AuditLogClient",
    "Keys": "KeysClient",
    "Profile": "ProfileClient",
    "Deployment": "DeploymentsClient",
}
HANDLES = (
    "EnvironmentResource",
    "AgentResource",
    "VerifierResource",
    "TrainingJobResource",
    "EvaluationJobResource",
)
CLIENTS = ("Client", "AsyncClient")

SURFACE = """
EnvironmentsClient
    create(name, description, tools, scenarios, verifiers, simulations, vertical=None,
        domain=None, config=None, owner='', sdk='gradio', compute='cpu-basic', license='',
        tags=None, infrastructure=None, verifier_configs=None, source='custom', repo=None)
    register_environment(name, description, tools, scenarios, verifiers, simulations,
        vertical=None, domain=None, config=None, owner='', sdk='gradio', compute='cpu-basic',
        license='', tags=None, infrastructure=None, verifier_configs=None, source='custom',
        repo=None)
    validate_repo(repo_url, branch='main', auth_type='none', username='', token='')
    save_repo_config(env_name, provider='github', repo_url='', branch='main', context_path='',
        auth_type='none', username='', token='')
    load_repo_config(env_name)
    get(identifier)
    list(status=None, vertical=None, category=None, limit=None, offset=None, cursor=None)
ToolsClient
    list(env_id=None, env_name=None, category=None)
    get(tool_id, env_id=None, env_name=None)
    register(env_id, name, tool_type='custom', description='', parameters=None,
        compliance_tags=None, authorization_required=False, docker_image=None, spec_path=None)
    upsert(tools, env_id=None)
    update(tool_id, **fields)
    delete(tool_id)
TrainingClient
    configure_training(algorithm='GRPO', max_steps=1000, reward_fn=None, simulation=None,
        config=None)
    run(environment_name=None, env_id=None, agent_id=None, scenario_suite_id=None,
        algorithm='GRPO', config=None, name=None, verifier_ids=None,
        resume_from_checkpoint=None)
    get(job_id)
    list()
    cancel(job_id)
AgentsClient
    register(name, base_model='', model_ref=None, framework='openai_compatible',
        trainable=True, compatible_categories=None, tool_permissions=None)
    get(agent_id)
    list()
    delete(agent_id)
    configure(agent_id, **config)
    list_versions(agent_id)
    rollback(agent_id, version)
    validate(agent_id)
    dry_run(agent_id, environment_id, episodes=5)
    list_dry_runs(agent_id)
    deploy(agent_id, environment_id, label=None)
    export(checkpoint_id, agent_id=None, format='huggingface', include_metadata=True,
        include_audit_hash=True, download_to=None)
VerifierClient
    create(name, verifier_type, environment='', env_id=None, config=None, description='',
        system='Custom', verifier_id=None)
    get(verifier_id)
    list(environment=None, verifier_type=None, system=None)
    delete(verifier_id)
    test(verifier_id, state=None, trajectory=None)
ScenarioClient
    library(vertical=None, tier=None, domain=None, tags=None, limit=20)
    from_library(library_id, env_id=None, env_name=None)
    create(name, env_id=None, env_name=None, tier=1, task_prompt=None, available_tools=None,
        max_steps=20, context_injection=None, success_criteria_ref=None, tags=None,
        scenario_id=None)
    update(scenario_id, success_criteria_ref=None, **fields)
    get(scenario_id)
    list(env_name=None, category=None)
    delete(scenario_id)
ScenarioSuiteClient
    create(name, scenario_ids, env_id=None, env_name=None, purpose='training', suite_id=None)
    get(suite_id)
    list(env_name=None, purpose=None)
EvaluationClient
    run(agent_checkpoint_id, scenario_suite_id, verifier_ids=None, name='',
        environment_name='', config=None)
    get_report(evaluation_id, environment_name='')
    compare(agent_checkpoints, scenario_suite_id, verifier_ids=None, environment_name='',
        baseline_id=None, trained_id=None, job_id=None)
    list_rollouts(environment_name=None)
    get_rollout(rollout_id, environment_name)
    get_rollout_comparison(environment_name, baseline_id, trained_id, job_id=None)
    export_audit_report(evaluation_id='', format='json', include_trajectory_summary=True,
        include_verifier_explanations=True, signature=False)
MetricsClient
    get_kpis(environment_name=None, refresh=False)
    get_kpi_history(environment_name=None, limit=50, offset=0)
    clear_kpi_history()
    list_agent_tools()
    invoke_agent_tool(tool, params=None)
    agent_health()
AuditLogClient
    query(environment_name=None, event_types=None, start_time=None, end_time=None, limit=100,
        offset=0, job_id=None, agent_id=None)
    get_event(event_id)
    export(path, environment_name=None, start_time=None, end_time=None, format='json')
    configure_governance(environment_name=None, data_retention_days=None, pii_fields=None,
        alert_thresholds=None, compliance_tags=None, **extra)
    get_governance()
    whoami()
    sso_status()
KeysClient
    create(name)
    list()
    revoke(key_id)
ProfileClient
    get()
    update(*, full_name=None, title=None, bio=None, avatar_url=None)
DeploymentsClient
    create(provider, cluster_name, env_name=None, region=None, subscription_id=None,
        resource_group=None, account_id=None, project_id=None, cluster_label=None,
        node_pool_name=None, vm_size=None, instance_type=None, machine_type=None,
        node_count=None, node_group_name=None, network_plugin=None, k8s_version=None,
        namespace=None, cpu=None, gpu=None, memory=None, scaling=None, min_replicas=None,
        max_replicas=None, k8s_labels=None, repo_url=None, repo_branch=None,
        repo_provider=None, repo_auth_type=None, repo_username=None, repo_token=None)
    list(env_name=None)
    get(deployment_id)
    delete(deployment_id)
    sync(deployment_id)
    deploy_app(deployment_id)
    set_app_status(deployment_id, status, message='')
    stream_logs(deployment_id, cursor=0, wait_seconds=20)
    get_urls(deployment_id, *, url_type=None)
    get_primary_url(deployment_id, *, prefer_type='dashboard')
    save_urls(deployment_id, urls)
    list_public_urls(env_name)
    availability_test(deployment_id, timeout_seconds=None, interval_seconds=None)
    probe_model(deployment_id, model_url=None, model=None, prompt=None, stream=False)
    configure_model(deployment_id, model_id, hf_token='', namespace='', endpoint_url='')
    get_cloud_config()
    update_cloud_config(patch)
    list_azure_clusters(subscription_id, resource_group=None)
    delete_azure_cluster(cluster_name, subscription_id, resource_group)
EnvironmentResource
    wait_until_ready(timeout=120, poll_interval=3.0)
    update(config=None, name=None, system=None, category=None)
    deploy(infrastructure=None)
    deprovision()
    delete(confirm=False)
    configure_tools(access_pattern=None, tool_names=None, approval_mode=None)
    attach_data(data_asset_id, injection_config=None)
    save_repo_config(provider='github', repo_url='', branch='main', context_path='',
        auth_type='none', username='', token='')
    load_repo_config()
    create_scenario(name, task_prompt=None, tier=1, available_tools=None, max_steps=20,
        context_injection=None, success_criteria_ref=None, tags=None)
    attach_verifier(verifier_id, weight=1.0)
    clone_scenarios(source_env_name)
    clone_verifiers(source_env_name)
    get_risk_report()
    analyze()
AgentResource
    export(checkpoint_id, format='huggingface', include_metadata=True,
        include_audit_hash=True, download_to=None)
    configure(**config)
    list_versions()
    rollback(version)
    validate()
    dry_run(environment_id, episodes=5)
    list_dry_runs()
    deploy(environment_id, label=None)
VerifierResource
    update(**fields)
    duplicate()
    disable()
    delete()
    test(state=None, trajectory=None)
TrainingJobResource
    get_metrics()
    wait_until_complete(timeout=86400, poll_interval=30.0, on_progress=None)
    list_checkpoints()
    get_best_checkpoint(metric='avg_reward')
    submit_human_eval(decision, comments=None, step_scores=None)
    set_webhook(url, events=None)
    cancel()
    get_logs(limit=None)
    stream_logs(poll_interval=5.0, timeout=86400)
    list_rollouts()
EvaluationJobResource
    wait_until_complete(timeout=3600.0, poll_interval=15.0)
Client
    get(path, *, params=None)
    post(path, *, json=None, data=None, params=None)
    put(path, *, json=None)
    patch(path, *, json=None)
    delete(path)
    ping()
    close()
AsyncClient
    get(path, *, params=None)
    post(path, *, json=None, params=None)
    put(path, *, json=None)
    patch(path, *, json=None)
    delete(path)
    ping()
    aclose()
"""


def signatures() -> Iterator[tuple[str, str, ast.arguments]]:
    """Yield class, method and parameters of every callable."""
    owner, parts = "", list[str]()
    for line in [*SURFACE.strip().splitlines(), ""]:
        starts = not line.startswith("        ")
        if starts and parts:
            function = ast.parse(f"def {' '.join(parts)}: ...").body[0]
            assert isinstance(function, ast.FunctionDef)
            yield owner, function.name, function.args
            parts = []
        if line.startswith("    "):
            parts.append(line.strip())
        elif line:
            owner = line


def callables() -> dict[str, list[str]]:
    """Return the names of the callables of each class."""
    found: dict[str, list[str]] = {}
    for owner, name, _ in signatures():
        found.setdefault(owner, []).append(name)
    return found
